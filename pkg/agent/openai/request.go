package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// object is a JSON object of a request.
type object = map[string]any

// params is the body of a request.
func (m *Model) params(req agent.Request) (object, error) {
	if req.Model == "" {
		return nil, m.client.Invalid("no model is given: name one, for example %q", example)
	}
	p := object{"model": req.Model}
	var messages []object
	if req.System != "" {
		messages = append(messages, object{"role": "system", "content": req.System})
	}
	said, err := conversation(req.Messages)
	if err != nil {
		return nil, m.client.Invalid("%v", err)
	}
	if messages = append(messages, said...); len(messages) > 0 {
		p["messages"] = messages
	}
	tools := make([]object, 0, len(req.Tools))
	for _, t := range req.Tools {
		var schema map[string]json.RawMessage
		if err := json.Unmarshal(t.Parameters, &schema); err != nil {
			return nil, m.client.Invalid("tool %q: parameters must be a JSON Schema object: %v", t.Name, err)
		}
		f := object{"name": t.Name, "parameters": t.Parameters}
		if t.Description != "" {
			f["description"] = t.Description
		}
		tools = append(tools, object{"type": "function", "function": f})
	}
	if len(tools) > 0 {
		p["tools"] = tools
		switch req.ToolChoice {
		case "", v1.ToolChoiceAuto: // what the API does by itself
		case v1.ToolChoiceRequired, v1.ToolChoiceNone:
			p["tool_choice"] = req.ToolChoice
		default:
			return nil, m.client.Invalid("tool_choice: expected auto, required or none, got %q", req.ToolChoice)
		}
	}
	if req.Output != nil {
		p["response_format"] = object{"type": "json_schema", "json_schema": object{"name": "output", "schema": req.Output, "strict": strict(req.Output)}}
	}
	if req.Thinking {
		p["reasoning_effort"] = effort(req.ThinkingBudget)
	}
	extra, err := provider.Parameters(req.Parameters, "model", "messages", "tools", "stream", "stream_options")
	if err != nil {
		return nil, m.client.Invalid("%v", err)
	}
	provider.Rename(extra, "stop_sequences", "stop")
	provider.Rename(extra, "max_output_tokens", "max_tokens")
	if m.own {
		provider.Rename(extra, "max_tokens", "max_completion_tokens")
	}
	for name, value := range extra {
		p[name] = value
	}
	return p, nil
}

// effort is the API's word for a budget of tokens, which it has not.
func effort(budget int) string {
	switch {
	case budget <= 0:
		return "medium"
	case budget <= 2048:
		return "low"
	case budget <= 8192:
		return "medium"
	}
	return "high"
}

// kept is what a reply has beside the fields of the API, such as the reasoning of a
// local model. It is Message.Raw.
type kept struct {
	Provider string                                `json:"provider"`
	Message  map[string]json.RawMessage            `json:"message,omitempty"`
	Calls    map[string]map[string]json.RawMessage `json:"calls,omitempty"`
}

func conversation(messages []agent.Message) ([]object, error) {
	var out []object
	var media []object // of the run of tool messages so far
	for i, msg := range messages {
		if msg.Role != agent.RoleTool && len(media) > 0 {
			out, media = append(out, object{"role": "user", "content": media}), nil
		}
		parts, err := contents(msg.Parts)
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		switch msg.Role {
		case agent.RoleUser:
			if len(parts) == 0 {
				out = append(out, object{"role": "user", "content": msg.Text})
				continue
			}
			if msg.Text != "" {
				parts = append([]object{textPart(msg.Text)}, parts...)
			}
			out = append(out, object{"role": "user", "content": parts})
		case agent.RoleAssistant:
			if len(parts) > 0 {
				return nil, fmt.Errorf("messages[%d]: the API takes no parts of an assistant message", i)
			}
			out = append(out, assistant(msg))
		case agent.RoleTool:
			text := msg.Text
			if msg.IsError && !strings.HasPrefix(text, "error: ") {
				text = "error: " + text
			}
			out = append(out, object{"role": "tool", "tool_call_id": msg.ToolCallID, "content": text})
			if len(parts) > 0 {
				// A tool message takes text only; the rest follows in a user message.
				media = append(media, textPart(fmt.Sprintf("From the result of tool %q, call %s:", msg.Tool, msg.ToolCallID)))
				media = append(media, parts...)
			}
		default:
			return nil, fmt.Errorf("messages[%d]: expected the role user, assistant or tool, got %q", i, msg.Role)
		}
	}
	if len(media) > 0 {
		out = append(out, object{"role": "user", "content": media})
	}
	return out, nil
}

func assistant(msg agent.Message) object {
	a := object{"role": "assistant"}
	if msg.Text != "" || len(msg.ToolCalls) == 0 {
		a["content"] = msg.Text
	}
	var k kept
	if json.Unmarshal(msg.Raw, &k) != nil || k.Provider != Name {
		k = kept{} // another provider's
	}
	calls := make([]object, 0, len(msg.ToolCalls))
	for _, c := range msg.ToolCalls {
		call := object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": string(provider.Arguments(c.Args))}}
		for name, value := range k.Calls[c.ID] {
			call[name] = value
		}
		calls = append(calls, call)
	}
	if len(calls) == 0 {
		return a
	}
	a["tool_calls"] = calls
	// Reasoning goes back only where it led to calls: some servers demand it there, and
	// some refuse it elsewhere.
	for name, value := range k.Message {
		a[name] = value
	}
	return a
}

func textPart(text string) object { return object{"type": "text", "text": text} }

func contents(parts []v1.Part) ([]object, error) {
	media, err := provider.Flatten(parts)
	if err != nil {
		return nil, err
	}
	out := make([]object, 0, len(media))
	for _, m := range media {
		part, err := content(m)
		if err != nil {
			return nil, err
		}
		out = append(out, part)
	}
	return out, nil
}

func content(m provider.Media) (part object, err error) {
	switch m.Kind {
	case provider.Text:
		return textPart(m.Text), nil
	case provider.Image:
		url := m.URL
		if m.Data != "" {
			url = "data:" + m.MIME + ";base64," + m.Data
		} else if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			return part, fmt.Errorf("image: expected data, or a uri of http or https, got %q", url)
		}
		return object{"type": "image_url", "image_url": object{"url": url}}, nil
	case provider.Audio:
		format := map[string]string{
			"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav",
			"audio/mpeg": "mp3", "audio/mp3": "mp3",
		}[m.MIME]
		if format != "" && m.Data != "" {
			return object{"type": "input_audio", "input_audio": object{"data": m.Data, "format": format}}, nil
		}
		return part, fmt.Errorf("%s cannot be sent: the API takes the data of audio/wav and audio/mpeg", m)
	case provider.Document:
		if m.MIME == "application/pdf" && m.Data != "" {
			name := cmp.Or(m.Name, "document.pdf")
			return object{"type": "file", "file": object{"file_data": "data:application/pdf;base64," + m.Data, "filename": name}}, nil
		}
		return part, fmt.Errorf("%s cannot be sent: the API takes the data of application/pdf, and text", m)
	}
	return part, fmt.Errorf("%s cannot be sent: the API takes text, images, audio and documents", m)
}

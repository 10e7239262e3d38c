package openai

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// object is a JSON object of a request.
type object = provider.Object

func body(p object, req agent.Request, tools []any, _ object) error {
	messages, err := conversation(req)
	if err != nil {
		return err
	}
	p["model"] = req.Model
	if len(messages) > 0 {
		p["messages"] = messages
	}
	for i, function := range tools {
		tools[i] = object{"type": "function", "function": function}
	}
	if len(tools) > 0 {
		p["tools"] = tools
	}
	if req.Output != nil {
		p["response_format"] = object{"type": "json_schema", "json_schema": object{"name": "output", "schema": req.Output, "strict": strict(req.Output)}}
	}
	if req.Thinking {
		p["reasoning_effort"] = effort(req.ThinkingBudget)
	}
	return nil
}

// effort translates a token budget, because the API has only words for it.
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

func conversation(req agent.Request) (out []object, err error) {
	say := func(role string, content any) { out = append(out, object{"role": role, "content": content}) }
	if req.System != "" {
		say("system", req.System)
	}
	var shown []any // parts of the current series of tool messages
	show := func() {
		if len(shown) > 0 {
			say("user", shown)
		}
		shown = nil
	}
	err = provider.Each(req.Messages, func(msg agent.Message) error {
		if msg.Role != agent.RoleTool {
			show()
		}
		parts, err := provider.Contents("", msg.Parts, content)
		switch {
		case err != nil:
			return err
		case msg.Role == agent.RoleUser && len(parts) == 0:
			say("user", msg.Text)
		case msg.Role == agent.RoleUser && msg.Text == "":
			say("user", parts)
		case msg.Role == agent.RoleUser:
			say("user", slices.Insert(parts, 0, any(textPart(msg.Text))))
		case msg.Role == agent.RoleTool:
			text := msg.Text
			if msg.IsError && !strings.HasPrefix(text, "error: ") {
				text = "error: " + text
			}
			out = append(out, object{"role": "tool", "tool_call_id": msg.ToolCallID, "content": text})
			if len(parts) > 0 { // a tool message can hold only text; the parts follow in a user message
				shown = append(append(shown, textPart(fmt.Sprintf("From the result of tool %q, call %s:", msg.Tool, msg.ToolCallID))), parts...)
			}
		case len(parts) > 0:
			return fmt.Errorf("the API accepts no parts in an assistant message")
		default:
			out = append(out, assistant(msg))
		}
		return nil
	})
	show()
	return out, err
}

func assistant(msg agent.Message) object {
	a := object{"role": "assistant"}
	if msg.Text != "" || len(msg.ToolCalls) == 0 {
		a["content"] = msg.Text
	}
	if len(msg.ToolCalls) == 0 {
		return a
	}
	kept := provider.Restore(msg, Name)
	var calls []object
	for _, c := range msg.ToolCalls {
		call := object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": string(provider.Arguments(c.Args))}}
		for name, value := range kept.Calls[c.ID] {
			call[name] = value
		}
		calls = append(calls, call)
	}
	a["tool_calls"] = calls
	// Only reasoning that led to calls is sent back: some servers require it with calls, and some refuse it elsewhere.
	for name, value := range kept.Message {
		a[name] = value
	}
	return a
}

func textPart(text string) object { return object{"type": "text", "text": text} }

func content(m provider.Media) (part object, err error) {
	switch m.Kind {
	case provider.Text:
		return textPart(m.Text), nil
	case provider.Image:
		url := m.URL
		if m.Data != "" {
			url = "data:" + m.MIME + ";base64," + m.Data
		} else if !m.Remote() {
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
		return part, fmt.Errorf("%s cannot be sent: the API accepts the data of audio/wav and audio/mpeg", m)
	case provider.Document:
		if m.MIME == "application/pdf" && m.Data != "" {
			name := cmp.Or(m.Name, "document.pdf")
			return object{"type": "file", "file": object{"file_data": "data:application/pdf;base64," + m.Data, "filename": name}}, nil
		}
		return part, fmt.Errorf("%s cannot be sent: the API accepts the data of application/pdf, and text", m)
	}
	return part, fmt.Errorf("%s cannot be sent: the API accepts text, images, audio and documents", m)
}

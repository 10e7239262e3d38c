package google

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// names are the parameters that the API knows by another name.
var names = [][2]string{
	{"top_p", "topP"}, {"top_k", "topK"}, {"max_output_tokens", "maxOutputTokens"},
	{"max_tokens", "maxOutputTokens"}, {"max_completion_tokens", "maxOutputTokens"},
	{"stop_sequences", "stopSequences"}, {"stop", "stopSequences"},
	{"presence_penalty", "presencePenalty"}, {"frequency_penalty", "frequencyPenalty"}, {"candidate_count", "candidateCount"},
}

// topLevel are the parameters that stand beside generationConfig and not in it.
var topLevel = []string{"safetySettings", "cachedContent", "labels", "serviceTier", "toolConfig", "store"}

// body is the body of a request.
func (m *Model) body(req agent.Request) (map[string]any, error) {
	if req.Model == "" {
		return nil, m.client.Invalid("no model is given: name one, for example %q", example)
	}
	contents, err := conversation(req.Messages)
	if err != nil {
		return nil, m.client.Invalid("%v", err)
	}
	body := map[string]any{"contents": contents}
	system := req.System
	config := map[string]any{}
	if len(req.Tools) > 0 {
		if err := m.tools(body, req); err != nil {
			return nil, err
		}
	}
	if req.Output != nil {
		if len(req.Tools) > 0 && olderThan3(req.Model) {
			// Gemini 1 and 2 refuse a response schema beside tools.
			system = strings.TrimSpace(system + "\n\nWhen no more tool is needed, answer with JSON alone, which fits this JSON Schema: " + string(req.Output))
		} else {
			config["responseMimeType"] = "application/json"
			config["responseJsonSchema"] = req.Output
		}
	}
	if system != "" {
		body["systemInstruction"] = map[string]any{"parts": []part{{Text: system}}}
	}
	if req.Thinking {
		thinking := map[string]any{"includeThoughts": true}
		if req.ThinkingBudget > 0 {
			thinking["thinkingBudget"] = req.ThinkingBudget
		}
		config["thinkingConfig"] = thinking
	}
	if err := m.parameters(body, config, req.Parameters); err != nil {
		return nil, err
	}
	if len(config) > 0 {
		body["generationConfig"] = config
	}
	return body, nil
}

func (m *Model) tools(body map[string]any, req agent.Request) error {
	declarations := make([]map[string]any, 0, len(req.Tools))
	for _, t := range req.Tools {
		if !bytes.HasPrefix(bytes.TrimSpace(t.Parameters), []byte("{")) || !json.Valid(t.Parameters) {
			return m.client.Invalid("tool %q: parameters must be a JSON Schema object", t.Name)
		}
		d := map[string]any{"name": t.Name, "parametersJsonSchema": t.Parameters}
		if t.Description != "" {
			d["description"] = t.Description
		}
		declarations = append(declarations, d)
	}
	body["tools"] = []any{map[string]any{"functionDeclarations": declarations}}
	mode := ""
	switch req.ToolChoice {
	case "", v1.ToolChoiceAuto: // what the API does by itself
		return nil
	case v1.ToolChoiceRequired:
		mode = "ANY"
	case v1.ToolChoiceNone:
		mode = "NONE"
	default:
		return m.client.Invalid("tool_choice: expected auto, required or none, got %q", req.ToolChoice)
	}
	body["toolConfig"] = map[string]any{"functionCallingConfig": map[string]any{"mode": mode}}
	return nil
}

func (m *Model) parameters(body, config map[string]any, raw json.RawMessage) error {
	extra, err := provider.Parameters(raw, "model", "contents", "systemInstruction", "tools")
	if err != nil {
		return m.client.Invalid("%v", err)
	}
	for _, n := range names {
		provider.Rename(extra, n[0], n[1])
	}
	provider.List(extra, "stopSequences")
	for _, name := range topLevel {
		if v, ok := extra[name]; ok {
			body[name] = v
			delete(extra, name)
		}
	}
	if v, ok := extra["generationConfig"]; ok {
		inner, err := provider.Parameters(v)
		if err != nil {
			return m.client.Invalid("parameters.generationConfig must be a JSON object")
		}
		delete(extra, "generationConfig")
		for k, v := range inner {
			config[k] = v
		}
	}
	for k, v := range extra {
		config[k] = v
	}
	return nil
}

func olderThan3(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	return strings.HasPrefix(model, "gemini-1") || strings.HasPrefix(model, "gemini-2")
}

// turn is one content of a request. Its parts are JSON, since those of Message.Raw go
// back as they came.
type turn struct {
	Role  string            `json:"role"`
	Parts []json.RawMessage `json:"parts"`
}

// kept are the parts of a message as they came, where they hold more than text and
// calls. It is Message.Raw.
type kept struct {
	Provider string            `json:"provider"`
	Parts    []json.RawMessage `json:"parts"`
}

func conversation(messages []agent.Message) ([]turn, error) {
	out := []turn{}
	ids := map[string]string{} // of calls: the id that the API was told, "" for none
	tools := map[string]string{}
	results := 0 // of the last turn
	for i, msg := range messages {
		var parts, after []json.RawMessage
		var err error
		role := "user"
		switch msg.Role {
		case agent.RoleUser:
			parts, err = contents(msg.Text, msg.Parts)
		case agent.RoleAssistant:
			role = "model"
			for _, c := range msg.ToolCalls {
				tools[c.ID], ids[c.ID] = c.Name, c.ID
			}
			parts, err = assistant(msg, ids)
		case agent.RoleTool:
			name := msg.Tool
			if called := tools[msg.ToolCallID]; called != "" {
				name = called // as the model wrote it
			}
			parts, after, err = result(msg, name, ids[msg.ToolCallID])
		default:
			err = fmt.Errorf("expected the role user, assistant or tool, got %q", msg.Role)
		}
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		if len(parts) == 0 { // the API refuses a turn without parts
			continue
		}
		last := len(out) - 1
		if last < 0 || out[last].Role != role {
			out, results = append(out, turn{Role: role}), 0
			last++
		}
		if msg.Role == agent.RoleTool {
			// The results of one turn stand together and first, what they showed after them.
			t := out[last].Parts
			out[last].Parts = append(append(append([]json.RawMessage{}, t[:results]...), parts...), t[results:]...)
			results++
			out[last].Parts = append(out[last].Parts, after...)
			continue
		}
		out[last].Parts = append(out[last].Parts, parts...)
	}
	return out, nil
}

// assistant returns the parts of a reply, and notes in ids which calls had none.
func assistant(msg agent.Message, ids map[string]string) ([]json.RawMessage, error) {
	if parts := restore(msg, ids); parts != nil {
		return parts, nil
	}
	out, err := contents(msg.Text, msg.Parts)
	if err != nil {
		return nil, err
	}
	for _, c := range msg.ToolCalls {
		call := &functionCall{ID: c.ID, Name: c.Name, Args: provider.Arguments(c.Args)}
		if string(call.Args) == "{}" {
			call.Args = nil
		}
		part, err := encode(&part{FunctionCall: call})
		if err != nil {
			return nil, err
		}
		out = append(out, part)
	}
	return out, nil
}

// restore returns the parts of Message.Raw, where the message still says the same.
func restore(msg agent.Message, ids map[string]string) []json.RawMessage {
	var k kept
	if json.Unmarshal(msg.Raw, &k) != nil || k.Provider != Name {
		return nil
	}
	var text strings.Builder
	told := map[string]string{}
	n := 0
	for _, raw := range k.Parts {
		var p struct {
			Text         string `json:"text"`
			Thought      bool   `json:"thought"`
			FunctionCall *struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			} `json:"functionCall"`
		}
		if json.Unmarshal(raw, &p) != nil {
			return nil
		}
		if !p.Thought {
			text.WriteString(p.Text)
		}
		if c := p.FunctionCall; c != nil {
			if n >= len(msg.ToolCalls) || msg.ToolCalls[n].Name != c.Name || c.ID != "" && msg.ToolCalls[n].ID != c.ID {
				return nil
			}
			told[msg.ToolCalls[n].ID] = c.ID
			n++
		}
	}
	if n != len(msg.ToolCalls) || text.String() != msg.Text {
		return nil
	}
	maps.Copy(ids, told)
	return k.Parts
}

// result returns the part of a result, and the parts that it shows beside.
func result(msg agent.Message, name, id string) (parts, after []json.RawMessage, err error) {
	var value any = msg.Text
	if text := strings.TrimSpace(msg.Text); text != "" && json.Valid([]byte(text)) {
		value = json.RawMessage(text)
	}
	key := "output"
	if msg.IsError {
		key = "error"
	}
	said, err := encode(&part{FunctionResponse: &functionResponse{ID: id, Name: name, Response: map[string]any{key: value}}})
	if err != nil {
		return nil, nil, err
	}
	if len(msg.Parts) > 0 {
		// Not inside the result, which Gemini takes from 3 on only.
		after, err = contents(fmt.Sprintf("From the result of tool %q:", name), msg.Parts)
	}
	return []json.RawMessage{said}, after, err
}

func contents(text string, parts []v1.Part) ([]json.RawMessage, error) {
	media, err := provider.Flatten(parts)
	if err != nil {
		return nil, err
	}
	if text != "" {
		media = append([]provider.Media{{Kind: provider.Text, Text: text}}, media...)
	}
	var out []json.RawMessage
	for _, m := range media {
		p := &part{}
		switch {
		case m.Kind == provider.Text:
			p.Text = m.Text
		case m.Data != "":
			p.InlineData = &blob{Data: m.Data, MIMEType: m.MIME}
		default:
			p.FileData = &fileData{FileURI: m.URL, MIMEType: m.MIME}
		}
		raw, err := encode(p)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

// encode writes a part. The type leaves out an empty text, and the API refuses a part
// that has a signature alone.
func encode(p *part) (json.RawMessage, error) {
	raw, err := jsontext.Marshal(p)
	if err != nil {
		return nil, err
	}
	if alone := *p; len(p.ThoughtSignature) > 0 {
		alone.ThoughtSignature, alone.Thought = "", false
		if rest, err := json.Marshal(&alone); err == nil && string(rest) == "{}" {
			raw = append([]byte(`{"text":"",`), raw[1:]...)
		}
	}
	return raw, nil
}

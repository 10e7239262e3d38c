package anthropic

import (
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
	p := object{"model": req.Model, "max_tokens": DefaultMaxTokens}
	if req.System != "" {
		p["system"] = []object{textBlock(req.System)}
	}
	messages, err := conversation(req.Messages)
	if err != nil {
		return nil, m.client.Invalid("%v", err)
	}
	if len(messages) > 0 {
		p["messages"] = messages
	}
	tools := make([]object, 0, len(req.Tools))
	for _, t := range req.Tools {
		var schema map[string]json.RawMessage
		if err := json.Unmarshal(t.Parameters, &schema); err != nil || schema == nil {
			return nil, m.client.Invalid("tool %q: parameters must be a JSON Schema object", t.Name)
		}
		tool := object{"name": t.Name, "input_schema": t.Parameters}
		if t.Description != "" {
			tool["description"] = t.Description
		}
		tools = append(tools, tool)
	}
	if len(tools) > 0 {
		p["tools"] = tools
		switch req.ToolChoice {
		case "", v1.ToolChoiceAuto: // what the API does by itself
		case v1.ToolChoiceRequired:
			p["tool_choice"] = object{"type": "any"}
		case v1.ToolChoiceNone:
			p["tool_choice"] = object{"type": "none"}
		default:
			return nil, m.client.Invalid("tool_choice: expected auto, required or none, got %q", req.ToolChoice)
		}
	}
	if req.Output != nil {
		var schema map[string]json.RawMessage
		if err := json.Unmarshal(req.Output, &schema); err != nil || schema == nil {
			return nil, m.client.Invalid("output must be a JSON Schema object")
		}
		delete(schema, "$schema") // the API compiles one dialect only
		p["output_config"] = object{"format": object{"type": "json_schema", "schema": schema}}
	}
	switch {
	case req.Thinking && req.ThinkingBudget > 0:
		p["thinking"] = object{"type": "enabled", "budget_tokens": req.ThinkingBudget}
		p["max_tokens"] = DefaultMaxTokens + req.ThinkingBudget
	case req.Thinking:
		p["thinking"] = object{"type": "adaptive"}
	}
	extra, err := provider.Parameters(req.Parameters, "model", "messages", "system", "tools", "stream")
	if err != nil {
		return nil, m.client.Invalid("%v", err)
	}
	provider.Rename(extra, "stop", "stop_sequences")
	provider.List(extra, "stop_sequences")
	provider.Rename(extra, "max_completion_tokens", "max_tokens")
	provider.Rename(extra, "max_output_tokens", "max_tokens")
	for name, value := range extra {
		p[name] = value
	}
	return p, nil
}

// kept is the content of a message as it came, where it holds more than text and calls.
// It is Message.Raw.
type kept struct {
	Provider string            `json:"provider"`
	Content  []json.RawMessage `json:"content"`
}

// turn is one message of a request. Its blocks are objects, or JSON as it came.
type turn struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

func conversation(messages []agent.Message) ([]turn, error) {
	var out []turn
	for i, msg := range messages {
		role := agent.RoleUser
		var blocks []any
		var err error
		switch msg.Role {
		case agent.RoleUser:
			blocks, err = contents(msg)
		case agent.RoleTool:
			var block any
			block, err = result(msg)
			blocks = append(blocks, block)
		case agent.RoleAssistant:
			role = agent.RoleAssistant
			blocks, err = assistant(msg)
		default:
			err = fmt.Errorf("expected the role user, assistant or tool, got %q", msg.Role)
		}
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		if len(blocks) == 0 { // the API refuses a message without content
			continue
		}
		// All results of one turn belong into one message, with what the user says next.
		if last := len(out) - 1; last >= 0 && out[last].Role == role {
			out[last].Content = append(out[last].Content, blocks...)
			continue
		}
		out = append(out, turn{Role: role, Content: blocks})
	}
	return out, nil
}

func assistant(msg agent.Message) ([]any, error) {
	if len(msg.Parts) > 0 {
		return nil, fmt.Errorf("the API takes no parts of an assistant message")
	}
	thinking, unchanged := restore(msg)
	if unchanged != nil {
		return unchanged, nil
	}
	blocks := thinking
	if msg.Text != "" {
		blocks = append(blocks, textBlock(msg.Text))
	}
	for _, c := range msg.ToolCalls {
		blocks = append(blocks, object{"type": "tool_use", "id": callID(c.ID), "name": c.Name, "input": provider.Arguments(c.Args)})
	}
	return blocks, nil
}

// restore returns the blocks of Message.Raw: all of them where the message still says
// the same, else only those of thinking.
func restore(msg agent.Message) (thinking, unchanged []any) {
	var k kept
	if json.Unmarshal(msg.Raw, &k) != nil || k.Provider != Name {
		return nil, nil
	}
	var text strings.Builder
	var calls []agent.ToolCall
	for _, raw := range k.Content {
		var b struct {
			Type, Text, ID, Name string
		}
		if json.Unmarshal(raw, &b) != nil {
			return nil, nil
		}
		unchanged = append(unchanged, raw)
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
		case "tool_use":
			calls = append(calls, agent.ToolCall{ID: b.ID, Name: b.Name})
		case "thinking", "redacted_thinking":
			thinking = append(thinking, raw)
		}
	}
	if text.String() != msg.Text || !provider.SameCalls(msg, calls) {
		return thinking, nil
	}
	return nil, unchanged
}

func result(msg agent.Message) (any, error) {
	r := object{"type": "tool_result", "tool_use_id": callID(msg.ToolCallID)}
	if msg.IsError {
		r["is_error"] = true
	}
	blocks, err := contents(msg)
	if err != nil {
		return nil, err
	}
	if len(blocks) > 0 {
		r["content"] = blocks
	}
	return r, nil
}

func textBlock(text string) object { return object{"type": "text", "text": text} }

// contents are the text and the parts of a message.
func contents(msg agent.Message) ([]any, error) {
	var out []any
	if msg.Text != "" {
		out = append(out, textBlock(msg.Text))
	}
	media, err := provider.Flatten(msg.Parts)
	if err != nil {
		return nil, err
	}
	for _, m := range media {
		block, err := content(m)
		if err != nil {
			return nil, err
		}
		out = append(out, block)
	}
	return out, nil
}

func content(m provider.Media) (block object, err error) {
	remote := strings.HasPrefix(m.URL, "https://") || strings.HasPrefix(m.URL, "http://")
	switch m.Kind {
	case provider.Text:
		return textBlock(m.Text), nil
	case provider.Image:
		switch {
		case m.Data == "" && remote:
			return object{"type": "image", "source": object{"type": "url", "url": m.URL}}, nil
		case m.MIME == "image/png", m.MIME == "image/jpeg", m.MIME == "image/gif", m.MIME == "image/webp":
			return object{"type": "image", "source": base64Source(m)}, nil
		}
		return block, fmt.Errorf("%s cannot be sent: the API takes image/png, image/jpeg, image/gif and image/webp, or a uri of http or https", m)
	case provider.Document:
		var source object
		switch {
		case m.Data == "" && remote:
			source = object{"type": "url", "url": m.URL}
		case m.MIME == "application/pdf":
			source = base64Source(m)
		default:
			return block, fmt.Errorf("%s cannot be sent: the API takes application/pdf and text", m)
		}
		block = object{"type": "document", "source": source}
		if m.Name != "" {
			block["title"] = m.Name
		}
		return block, nil
	}
	return block, fmt.Errorf("%s cannot be sent: the API takes text, images and documents", m)
}

func base64Source(m provider.Media) object {
	return object{"type": "base64", "media_type": m.MIME, "data": m.Data}
}

// callID fits a call's id to ^[a-zA-Z0-9_-]+$: the calls of another provider may have
// other characters.
func callID(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
}

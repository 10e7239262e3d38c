package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// object is a JSON object of a request.
type object = provider.Object

func body(p object, req agent.Request, tools []any, extra object) error {
	messages, err := conversation(req.Messages)
	if err != nil {
		return err
	}
	p["model"], p["max_tokens"] = req.Model, DefaultMaxTokens
	if req.System != "" {
		p["system"] = []object{textBlock(req.System)}
	}
	if len(messages) > 0 {
		p["messages"] = messages
	}
	if len(tools) > 0 {
		p["tools"] = tools
	}
	if req.Output != nil {
		var schema map[string]json.RawMessage
		if err := json.Unmarshal(req.Output, &schema); err != nil || schema == nil {
			return fmt.Errorf("output must be a JSON Schema object")
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
	provider.List(extra, "stop_sequences")
	return nil
}

// turn is one message of a request. Its blocks are objects or raw JSON.
type turn struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

func conversation(messages []agent.Message) (out []turn, err error) {
	err = provider.Each(messages, func(msg agent.Message) error {
		role := agent.RoleUser
		var blocks []any
		var err error
		switch msg.Role {
		case agent.RoleUser:
			blocks, err = provider.Contents(msg.Text, msg.Parts, content)
		case agent.RoleTool:
			blocks, err = result(msg)
		case agent.RoleAssistant:
			role = agent.RoleAssistant
			blocks, err = assistant(msg)
		}
		// All results of one turn belong in one message, together with the next text of the user.
		// The API refuses a message without content.
		if last := len(out) - 1; last >= 0 && out[last].Role == role {
			out[last].Content = append(out[last].Content, blocks...)
		} else if len(blocks) > 0 {
			out = append(out, turn{Role: role, Content: blocks})
		}
		return err
	})
	return out, err
}

func assistant(msg agent.Message) ([]any, error) {
	if len(msg.Parts) > 0 {
		return nil, fmt.Errorf("the API accepts no parts in an assistant message")
	}
	blocks, whole := restore(msg)
	if whole {
		return blocks, nil
	}
	if msg.Text != "" {
		blocks = append(blocks, textBlock(msg.Text))
	}
	for _, c := range msg.ToolCalls {
		blocks = append(blocks, object{"type": "tool_use", "id": callID(c.ID), "name": c.Name, "input": provider.Arguments(c.Args)})
	}
	return blocks, nil
}

// restore returns the blocks of Message.Raw. If these no longer match the message, it returns only the blocks with
// thinking.
func restore(msg agent.Message) (blocks []any, whole bool) {
	var text strings.Builder
	var calls []agent.ToolCall
	var thinking []any
	for _, raw := range provider.Restore(msg, Name).Content {
		var b struct {
			Type, Text, ID, Name string
		}
		if json.Unmarshal(raw, &b) != nil {
			return nil, false
		}
		blocks = append(blocks, raw)
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
		case "tool_use":
			calls = append(calls, agent.ToolCall{ID: b.ID, Name: b.Name})
		case "thinking", "redacted_thinking":
			thinking = append(thinking, raw)
		}
	}
	same := slices.EqualFunc(msg.ToolCalls, calls, func(a, b agent.ToolCall) bool { return a.ID == b.ID && a.Name == b.Name })
	if len(blocks) == 0 || !same || text.String() != msg.Text { // someone edited the conversation
		return thinking, false
	}
	return blocks, true
}

func result(msg agent.Message) ([]any, error) {
	r := object{"type": "tool_result", "tool_use_id": callID(msg.ToolCallID)}
	if msg.IsError {
		r["is_error"] = true
	}
	blocks, err := provider.Contents(msg.Text, msg.Parts, content)
	if len(blocks) > 0 {
		r["content"] = blocks
	}
	return []any{r}, err
}

func textBlock(text string) object { return object{"type": "text", "text": text} }

func content(m provider.Media) (block object, err error) {
	switch m.Kind {
	case provider.Text:
		return textBlock(m.Text), nil
	case provider.Image:
		switch {
		case m.Remote():
			return object{"type": "image", "source": object{"type": "url", "url": m.URL}}, nil
		case m.MIME == "image/png", m.MIME == "image/jpeg", m.MIME == "image/gif", m.MIME == "image/webp":
			return object{"type": "image", "source": base64Source(m)}, nil
		}
		return block, fmt.Errorf("%s cannot be sent: the API accepts image/png, image/jpeg, image/gif and image/webp, or a uri of http or https", m)
	case provider.Document:
		var source object
		switch {
		case m.Remote():
			source = object{"type": "url", "url": m.URL}
		case m.MIME == "application/pdf":
			source = base64Source(m)
		default:
			return block, fmt.Errorf("%s cannot be sent: the API accepts application/pdf and text", m)
		}
		block = object{"type": "document", "source": source}
		if m.Name != "" {
			block["title"] = m.Name
		}
		return block, nil
	}
	return block, fmt.Errorf("%s cannot be sent: the API accepts text, images and documents", m)
}

func base64Source(m provider.Media) object {
	return object{"type": "base64", "media_type": m.MIME, "data": m.Data}
}

// callID replaces characters that the API refuses in the id of a call (it must match
// ^[a-zA-Z0-9_-]+$), because calls of another provider may have them.
func callID(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
}

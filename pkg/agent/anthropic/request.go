package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// params is the body of a request.
func (m *Model) params(req agent.Request) (sdk.MessageNewParams, error) {
	var p sdk.MessageNewParams
	if req.Model == "" {
		return p, m.client.Invalid("no model is given: name one, for example %q", example)
	}
	p.Model = req.Model
	p.MaxTokens = DefaultMaxTokens
	if req.System != "" {
		p.System = []sdk.TextBlockParam{{Text: req.System}}
	}
	var err error
	if p.Messages, err = conversation(req.Messages); err != nil {
		return p, m.client.Invalid("%v", err)
	}
	for _, t := range req.Tools {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(t.Parameters, &object); err != nil || object == nil {
			return p, m.client.Invalid("tool %q: parameters must be a JSON Schema object", t.Name)
		}
		tool := sdk.ToolParam{Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](t.Parameters)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfTool: &tool})
	}
	if len(req.Tools) > 0 {
		switch req.ToolChoice {
		case "", v1.ToolChoiceAuto: // what the API does by itself
		case v1.ToolChoiceRequired:
			p.ToolChoice.OfAny = &sdk.ToolChoiceAnyParam{}
		case v1.ToolChoiceNone:
			p.ToolChoice.OfNone = &sdk.ToolChoiceNoneParam{}
		default:
			return p, m.client.Invalid("tool_choice: expected auto, required or none, got %q", req.ToolChoice)
		}
	}
	if req.Output != nil {
		var schema map[string]json.RawMessage
		if err := json.Unmarshal(req.Output, &schema); err != nil || schema == nil {
			return p, m.client.Invalid("output must be a JSON Schema object")
		}
		delete(schema, "$schema") // the API compiles one dialect only
		p.OutputConfig.Format.Schema = anyMap(schema)
	}
	switch {
	case req.Thinking && req.ThinkingBudget > 0:
		// Not by the SDK's type, with which it prints to standard error for some models.
		p.Thinking = param.Override[sdk.ThinkingConfigParamUnion](map[string]any{"type": "enabled", "budget_tokens": req.ThinkingBudget})
		p.MaxTokens += int64(req.ThinkingBudget)
	case req.Thinking:
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
	}
	extra, err := provider.Parameters(req.Parameters, "model", "messages", "system", "tools", "stream")
	if err != nil {
		return p, m.client.Invalid("%v", err)
	}
	provider.Rename(extra, "stop", "stop_sequences")
	provider.List(extra, "stop_sequences")
	provider.Rename(extra, "max_completion_tokens", "max_tokens")
	provider.Rename(extra, "max_output_tokens", "max_tokens")
	if len(extra) > 0 {
		p.SetExtraFields(anyMap(extra))
	}
	return p, nil
}

// kept is the content of a message as it came, where it holds more than text and calls.
// It is Message.Raw.
type kept struct {
	Provider string            `json:"provider"`
	Content  []json.RawMessage `json:"content"`
}

func conversation(messages []agent.Message) ([]sdk.MessageParam, error) {
	var out []sdk.MessageParam
	for i, msg := range messages {
		role := sdk.MessageParamRoleUser
		var blocks []sdk.ContentBlockParamUnion
		var err error
		switch msg.Role {
		case agent.RoleUser:
			blocks, err = contents(msg)
		case agent.RoleTool:
			var block sdk.ContentBlockParamUnion
			block, err = result(msg)
			blocks = append(blocks, block)
		case agent.RoleAssistant:
			role = sdk.MessageParamRoleAssistant
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
		out = append(out, sdk.MessageParam{Role: role, Content: blocks})
	}
	return out, nil
}

func assistant(msg agent.Message) ([]sdk.ContentBlockParamUnion, error) {
	if len(msg.Parts) > 0 {
		return nil, fmt.Errorf("the API takes no parts of an assistant message")
	}
	thinking, unchanged := restore(msg)
	if unchanged != nil {
		return unchanged, nil
	}
	blocks := thinking
	if msg.Text != "" {
		blocks = append(blocks, sdk.NewTextBlock(msg.Text))
	}
	for _, c := range msg.ToolCalls {
		blocks = append(blocks, sdk.NewToolUseBlock(callID(c.ID), provider.Arguments(c.Args), c.Name))
	}
	return blocks, nil
}

// restore returns the blocks of Message.Raw: all of them where the message still says
// the same, else only those of thinking.
func restore(msg agent.Message) (thinking, unchanged []sdk.ContentBlockParamUnion) {
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
		block := param.Override[sdk.ContentBlockParamUnion](raw)
		unchanged = append(unchanged, block)
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
		case "tool_use":
			calls = append(calls, agent.ToolCall{ID: b.ID, Name: b.Name})
		case "thinking", "redacted_thinking":
			thinking = append(thinking, block)
		}
	}
	if text.String() != msg.Text || !provider.SameCalls(msg, calls) {
		return thinking, nil
	}
	return nil, unchanged
}

func result(msg agent.Message) (sdk.ContentBlockParamUnion, error) {
	r := sdk.ToolResultBlockParam{ToolUseID: callID(msg.ToolCallID)}
	if msg.IsError {
		r.IsError = param.NewOpt(true)
	}
	blocks, err := contents(msg)
	if err != nil {
		return sdk.ContentBlockParamUnion{}, err
	}
	for _, b := range blocks {
		r.Content = append(r.Content, sdk.ToolResultBlockParamContentUnion{OfText: b.OfText, OfImage: b.OfImage, OfDocument: b.OfDocument})
	}
	return sdk.ContentBlockParamUnion{OfToolResult: &r}, nil
}

// contents are the text and the parts of a message.
func contents(msg agent.Message) ([]sdk.ContentBlockParamUnion, error) {
	var out []sdk.ContentBlockParamUnion
	if msg.Text != "" {
		out = append(out, sdk.NewTextBlock(msg.Text))
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

func content(m provider.Media) (block sdk.ContentBlockParamUnion, err error) {
	remote := strings.HasPrefix(m.URL, "https://") || strings.HasPrefix(m.URL, "http://")
	switch m.Kind {
	case provider.Text:
		return sdk.NewTextBlock(m.Text), nil
	case provider.Image:
		switch {
		case m.Data == "" && remote:
			return sdk.NewImageBlock(sdk.URLImageSourceParam{URL: m.URL}), nil
		case m.MIME == "image/png", m.MIME == "image/jpeg", m.MIME == "image/gif", m.MIME == "image/webp":
			return sdk.NewImageBlockBase64(m.MIME, m.Data), nil
		}
		return block, fmt.Errorf("%s cannot be sent: the API takes image/png, image/jpeg, image/gif and image/webp, or a uri of http or https", m)
	case provider.Document:
		var source sdk.DocumentBlockParamSourceUnion
		switch {
		case m.Data == "" && remote:
			source.OfURL = &sdk.URLPDFSourceParam{URL: m.URL}
		case m.MIME == "application/pdf":
			source.OfBase64 = &sdk.Base64PDFSourceParam{Data: m.Data}
		default:
			return block, fmt.Errorf("%s cannot be sent: the API takes application/pdf and text", m)
		}
		d := sdk.DocumentBlockParam{Source: source}
		if m.Name != "" {
			d.Title = param.NewOpt(m.Name)
		}
		return sdk.ContentBlockParamUnion{OfDocument: &d}, nil
	}
	return block, fmt.Errorf("%s cannot be sent: the API takes text, images and documents", m)
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

func anyMap(m map[string]json.RawMessage) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

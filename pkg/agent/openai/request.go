package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// params is the body of a request.
func (m *Model) params(req agent.Request) (sdk.ChatCompletionNewParams, error) {
	var p sdk.ChatCompletionNewParams
	if req.Model == "" {
		return p, m.client.Invalid("no model is given: name one, for example %q", example)
	}
	p.Model = req.Model
	if req.System != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(req.System))
	}
	messages, err := conversation(req.Messages)
	if err != nil {
		return p, m.client.Invalid("%v", err)
	}
	p.Messages = append(p.Messages, messages...)
	for _, t := range req.Tools {
		f := shared.FunctionDefinitionParam{Name: t.Name}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		if f.Parameters, err = object(t.Parameters); err != nil {
			return p, m.client.Invalid("tool %q: parameters must be a JSON Schema object: %v", t.Name, err)
		}
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	if len(req.Tools) > 0 {
		switch req.ToolChoice {
		case "", v1.ToolChoiceAuto: // what the API does by itself
		case v1.ToolChoiceRequired, v1.ToolChoiceNone:
			p.ToolChoice.OfAuto = param.NewOpt(req.ToolChoice)
		default:
			return p, m.client.Invalid("tool_choice: expected auto, required or none, got %q", req.ToolChoice)
		}
	}
	if req.Output != nil {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "output", Schema: req.Output, Strict: param.NewOpt(strict(req.Output)),
		}}
	}
	if req.Thinking {
		p.ReasoningEffort = effort(req.ThinkingBudget)
	}
	extra, err := provider.Parameters(req.Parameters, "model", "messages", "tools", "stream", "stream_options")
	if err != nil {
		return p, m.client.Invalid("%v", err)
	}
	provider.Rename(extra, "stop_sequences", "stop")
	provider.Rename(extra, "max_output_tokens", "max_tokens")
	if m.own {
		provider.Rename(extra, "max_tokens", "max_completion_tokens")
	}
	if len(extra) > 0 {
		p.SetExtraFields(anyMap(extra))
	}
	return p, nil
}

// effort is the API's word for a budget of tokens, which it has not.
func effort(budget int) shared.ReasoningEffort {
	switch {
	case budget <= 0:
		return shared.ReasoningEffortMedium
	case budget <= 2048:
		return shared.ReasoningEffortLow
	case budget <= 8192:
		return shared.ReasoningEffortMedium
	}
	return shared.ReasoningEffortHigh
}

// kept is what a reply has beside the fields of the API, such as the reasoning of a
// local model. It is Message.Raw.
type kept struct {
	Provider string                                `json:"provider"`
	Message  map[string]json.RawMessage            `json:"message,omitempty"`
	Calls    map[string]map[string]json.RawMessage `json:"calls,omitempty"`
}

func conversation(messages []agent.Message) ([]sdk.ChatCompletionMessageParamUnion, error) {
	var out []sdk.ChatCompletionMessageParamUnion
	var media []sdk.ChatCompletionContentPartUnionParam // of the run of tool messages so far
	for i, msg := range messages {
		if msg.Role != agent.RoleTool && len(media) > 0 {
			out, media = append(out, sdk.UserMessage(media)), nil
		}
		parts, err := contents(msg.Parts)
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		switch msg.Role {
		case agent.RoleUser:
			if len(parts) == 0 {
				out = append(out, sdk.UserMessage(msg.Text))
				continue
			}
			if msg.Text != "" {
				parts = append([]sdk.ChatCompletionContentPartUnionParam{sdk.TextContentPart(msg.Text)}, parts...)
			}
			out = append(out, sdk.UserMessage(parts))
		case agent.RoleAssistant:
			if len(parts) > 0 {
				return nil, fmt.Errorf("messages[%d]: the API takes no parts of an assistant message", i)
			}
			out = append(out, assistant(msg))
		case agent.RoleTool:
			text := msg.Text
			if msg.IsError {
				text = "error: " + text
			}
			out = append(out, sdk.ToolMessage(text, msg.ToolCallID))
			if len(parts) > 0 {
				// A tool message takes text only; the rest follows in a user message.
				media = append(media, sdk.TextContentPart(fmt.Sprintf("From the result of tool %q, call %s:", msg.Tool, msg.ToolCallID)))
				media = append(media, parts...)
			}
		default:
			return nil, fmt.Errorf("messages[%d]: expected the role user, assistant or tool, got %q", i, msg.Role)
		}
	}
	if len(media) > 0 {
		out = append(out, sdk.UserMessage(media))
	}
	return out, nil
}

func assistant(msg agent.Message) sdk.ChatCompletionMessageParamUnion {
	var a sdk.ChatCompletionAssistantMessageParam
	if msg.Text != "" || len(msg.ToolCalls) == 0 {
		a.Content.OfString = param.NewOpt(msg.Text)
	}
	var k kept
	if json.Unmarshal(msg.Raw, &k) != nil || k.Provider != Name {
		k = kept{} // another provider's
	}
	for _, c := range msg.ToolCalls {
		call := sdk.ChatCompletionMessageFunctionToolCallParam{ID: c.ID, Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
			Name: c.Name, Arguments: string(provider.Arguments(c.Args)),
		}}
		if extra := k.Calls[c.ID]; len(extra) > 0 {
			call.SetExtraFields(anyMap(extra))
		}
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &call})
	}
	// Reasoning goes back only where it led to calls: some servers demand it there, and
	// some refuse it elsewhere.
	if len(msg.ToolCalls) > 0 && len(k.Message) > 0 {
		a.SetExtraFields(anyMap(k.Message))
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &a}
}

func contents(parts []v1.Part) ([]sdk.ChatCompletionContentPartUnionParam, error) {
	media, err := provider.Flatten(parts)
	if err != nil {
		return nil, err
	}
	out := make([]sdk.ChatCompletionContentPartUnionParam, 0, len(media))
	for _, m := range media {
		part, err := content(m)
		if err != nil {
			return nil, err
		}
		out = append(out, part)
	}
	return out, nil
}

func content(m provider.Media) (part sdk.ChatCompletionContentPartUnionParam, err error) {
	switch m.Kind {
	case provider.Text:
		return sdk.TextContentPart(m.Text), nil
	case provider.Image:
		url := m.URL
		if m.Data != "" {
			url = "data:" + m.MIME + ";base64," + m.Data
		} else if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			return part, fmt.Errorf("image: expected data, or a uri of http or https, got %q", url)
		}
		return sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: url}), nil
	case provider.Audio:
		format := map[string]string{
			"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav",
			"audio/mpeg": "mp3", "audio/mp3": "mp3",
		}[m.MIME]
		if format != "" && m.Data != "" {
			return sdk.InputAudioContentPart(sdk.ChatCompletionContentPartInputAudioInputAudioParam{Data: m.Data, Format: format}), nil
		}
		return part, fmt.Errorf("%s cannot be sent: the API takes the data of audio/wav and audio/mpeg", m)
	case provider.Document:
		if m.MIME == "application/pdf" && m.Data != "" {
			name := m.Name
			if name == "" {
				name = "document.pdf"
			}
			return sdk.FileContentPart(sdk.ChatCompletionContentPartFileFileParam{
				FileData: param.NewOpt("data:application/pdf;base64," + m.Data), Filename: param.NewOpt(name),
			}), nil
		}
		return part, fmt.Errorf("%s cannot be sent: the API takes the data of application/pdf, and text", m)
	}
	return part, fmt.Errorf("%s cannot be sent: the API takes text, images, audio and documents", m)
}

// object reads a JSON object one level deep, so that the rest keeps its order and digits.
func object(raw json.RawMessage) (map[string]any, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	return anyMap(m), nil
}

func anyMap(m map[string]json.RawMessage) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

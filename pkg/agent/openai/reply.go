package openai

import (
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// builder gathers a reply, from one answer or from the chunks of a stream. Both take the
// same road, so that both end in the same reply.
type builder struct {
	req     agent.Request
	on      func(agent.Delta)
	text    strings.Builder
	refusal strings.Builder
	calls   []*call
	open    map[int64]*call // by the index that the API gives
	extra   map[string]*field
	stop    string
	model   string
	usage   agent.Usage
}

type call struct {
	id, name string
	args     strings.Builder
	extra    map[string]json.RawMessage
}

// field is a field that the API does not document. Texts come in pieces.
type field struct {
	text  strings.Builder
	value json.RawMessage // what is no text; the last one stands
}

func newBuilder(req agent.Request, on func(agent.Delta)) *builder {
	if on == nil {
		on = func(agent.Delta) {}
	}
	return &builder{req: req, on: on, open: map[int64]*call{}, extra: map[string]*field{}}
}

// whole takes an answer that came in one piece.
func (b *builder) whole(a *sdk.ChatCompletion) error {
	if a == nil || len(a.Choices) == 0 {
		return errors.New("it has no choices")
	}
	b.model = a.Model
	b.count(a.Usage)
	choice := a.Choices[0]
	b.text.WriteString(choice.Message.Content)
	b.refusal.WriteString(choice.Message.Refusal)
	b.extras(choice.Message.RawJSON())
	for i, t := range choice.Message.ToolCalls {
		b.call(int64(i), t.ID, t.Function.Name, t.Function.Arguments, t.RawJSON())
	}
	b.stop = choice.FinishReason
	return nil
}

// chunk takes a piece of a stream.
func (b *builder) chunk(c sdk.ChatCompletionChunk) {
	if c.Model != "" {
		b.model = c.Model
	}
	if c.JSON.Usage.Valid() {
		b.count(c.Usage)
	}
	if len(c.Choices) == 0 {
		return
	}
	choice := c.Choices[0]
	b.extras(choice.Delta.RawJSON())
	if choice.Delta.Content != "" {
		b.text.WriteString(choice.Delta.Content)
		b.on(agent.Delta{Text: choice.Delta.Content})
	}
	b.refusal.WriteString(choice.Delta.Refusal)
	for _, t := range choice.Delta.ToolCalls {
		b.call(t.Index, t.ID, t.Function.Name, t.Function.Arguments, t.RawJSON())
	}
	if choice.FinishReason != "" {
		b.stop = choice.FinishReason
	}
}

// call takes a piece of a call. Another id at the same index is another call: some
// servers give every call the index 0.
func (b *builder) call(index int64, id, name, args, raw string) {
	c := b.open[index]
	if c == nil || id != "" && c.id != "" && id != c.id {
		c = &call{}
		b.open[index] = c
		b.calls = append(b.calls, c)
	}
	if c.id == "" {
		c.id = id
	}
	if c.name == "" && name != "" {
		c.name = name
		b.on(agent.Delta{ToolCall: name})
	}
	c.args.WriteString(args)
	for k, v := range unknown(raw, "id", "type", "function", "index", "custom") {
		if c.extra == nil {
			c.extra = map[string]json.RawMessage{}
		}
		c.extra[k] = v
	}
}

func (b *builder) extras(raw string) {
	for k, v := range unknown(raw, "role", "content", "refusal", "tool_calls", "annotations", "audio", "function_call") {
		f := b.extra[k]
		if f == nil {
			f = &field{}
			b.extra[k] = f
		}
		var text string
		if json.Unmarshal(v, &text) != nil {
			f.value = v
			continue
		}
		f.text.WriteString(text)
		if text != "" && (k == "reasoning_content" || k == "reasoning") {
			b.on(agent.Delta{Thinking: text})
		}
	}
}

// unknown returns the fields of an object beside the known ones, and without nulls.
func unknown(raw string, known ...string) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &m) != nil {
		return nil
	}
	for _, k := range known {
		delete(m, k)
	}
	for k, v := range m {
		if string(v) == "null" {
			delete(m, k)
		}
	}
	return m
}

func (b *builder) count(u sdk.CompletionUsage) {
	b.usage = agent.Usage{
		InputTokens: u.PromptTokens, OutputTokens: u.CompletionTokens,
		ThinkingTokens: u.CompletionTokensDetails.ReasoningTokens,
		CachedTokens:   u.PromptTokensDetails.CachedTokens,
	}
}

// reply is what came so far.
func (b *builder) reply() agent.Reply {
	r := agent.Reply{Usage: b.usage, Model: b.model}
	r.Message = agent.Message{Role: agent.RoleAssistant, Text: b.text.String()}
	k := kept{Provider: Name}
	for i, c := range b.calls {
		id := c.id
		if id == "" {
			id = provider.CallID(b.req, i)
		}
		r.Message.ToolCalls = append(r.Message.ToolCalls, agent.ToolCall{ID: id, Name: c.name, Args: c.args.String()})
		if len(c.extra) > 0 {
			if k.Calls == nil {
				k.Calls = map[string]map[string]json.RawMessage{}
			}
			k.Calls[id] = c.extra
		}
	}
	for name, f := range b.extra {
		value := f.value
		if value == nil {
			if f.text.Len() == 0 {
				continue
			}
			text, err := json.Marshal(f.text.String())
			if err != nil {
				continue
			}
			value = text
		}
		if k.Message == nil {
			k.Message = map[string]json.RawMessage{}
		}
		k.Message[name] = value
	}
	if len(k.Message)+len(k.Calls) > 0 {
		if raw, err := json.Marshal(k); err == nil {
			r.Message.Raw = raw
		}
	}
	r.Stop = reason(b.stop, len(b.calls) > 0)
	if b.refusal.Len() > 0 {
		r.Stop = agent.StopFilter
		if r.Message.Text == "" {
			r.Message.Text = b.refusal.String()
		}
	}
	return r
}

func reason(word string, calls bool) string {
	switch word {
	case "stop":
		if calls { // as some servers say it
			return agent.StopToolCalls
		}
		return agent.StopEnd
	case "tool_calls", "function_call":
		return agent.StopToolCalls
	case "length":
		return agent.StopLength
	case "content_filter":
		return agent.StopFilter
	}
	return word
}

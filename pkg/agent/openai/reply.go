package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// completion is an answer, or a chunk of one.
type completion struct {
	Model   provider.String `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// choice has a message, or a delta of one.
type choice struct {
	Message      json.RawMessage `json:"message"`
	Delta        json.RawMessage `json:"delta"`
	FinishReason provider.String `json:"finish_reason"`
}

type message struct {
	Content   provider.String   `json:"content"`
	Refusal   provider.String   `json:"refusal"`
	ToolCalls []json.RawMessage `json:"tool_calls"`
}

type toolCall struct {
	Index    *int64          `json:"index"`
	ID       provider.String `json:"id"`
	Function struct {
		Name      provider.String `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	PromptTokens     provider.Count `json:"prompt_tokens"`
	CompletionTokens provider.Count `json:"completion_tokens"`
	CompletionDetail struct {
		ReasoningTokens provider.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	PromptDetail struct {
		CachedTokens provider.Count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// builder gathers a reply, from one answer or from the chunks of a stream. Both go through
// it, so that both end in the same reply.
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
func (b *builder) whole(a *completion) error {
	if len(a.Choices) == 0 {
		return errors.New("it has no choices")
	}
	b.model = string(a.Model)
	b.count(a.Usage)
	b.stop = string(a.Choices[0].FinishReason)
	return b.message(a.Choices[0].Message)
}

// chunk takes a piece of a stream.
func (b *builder) chunk(c *completion) error {
	if c.Model != "" {
		b.model = string(c.Model)
	}
	b.count(c.Usage)
	if len(c.Choices) == 0 {
		return nil
	}
	if reason := c.Choices[0].FinishReason; reason != "" {
		b.stop = string(reason)
	}
	return b.message(c.Choices[0].Delta)
}

// message takes a message, or a piece of one.
func (b *builder) message(raw json.RawMessage) error {
	var m message
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
	}
	b.extras(string(raw))
	if m.Content != "" {
		b.text.WriteString(string(m.Content))
		b.on(agent.Delta{Text: string(m.Content)})
	}
	b.refusal.WriteString(string(m.Refusal))
	for i, raw := range m.ToolCalls {
		var t toolCall
		if err := json.Unmarshal(raw, &t); err != nil {
			return err
		}
		index := int64(i)
		if t.Index != nil {
			index = *t.Index
		}
		args := string(t.Function.Arguments) // some servers write an object
		if args == "null" {
			args = ""
		}
		_ = json.Unmarshal(t.Function.Arguments, &args) // a JSON text, as the API has it
		b.call(index, string(t.ID), string(t.Function.Name), args, string(raw))
	}
	return nil
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
	c.id = cmp.Or(c.id, id)
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

func (b *builder) count(u *usage) {
	if u == nil {
		return
	}
	b.usage = agent.Usage{
		InputTokens: int64(u.PromptTokens), OutputTokens: int64(u.CompletionTokens),
		ThinkingTokens: int64(u.CompletionDetail.ReasoningTokens),
		CachedTokens:   int64(u.PromptDetail.CachedTokens),
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

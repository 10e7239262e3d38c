package anthropic

import (
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// builder gathers a reply, from one answer or from the events of a stream.
type builder struct {
	req    agent.Request
	on     func(agent.Delta)
	blocks []*block
	open   map[int64]*block // by the index that the API gives
	usage  sdk.Usage
	stop   string
	model  string
	ended  bool
}

// block is one block of content: as it began, and what was added to it since.
type block struct {
	kind, id, name string
	start          string // JSON
	text, thinking strings.Builder
	signature      strings.Builder
	input          strings.Builder
}

func newBuilder(req agent.Request, on func(agent.Delta)) *builder {
	if on == nil {
		on = func(agent.Delta) {}
	}
	return &builder{req: req, on: on, open: map[int64]*block{}}
}

// whole takes an answer that came in one piece.
func (b *builder) whole(a *sdk.Message) error {
	if a == nil || a.JSON.Content.Raw() == "" {
		return errors.New("it has no content")
	}
	b.model, b.stop, b.usage, b.ended = a.Model, string(a.StopReason), a.Usage, true
	for _, c := range a.Content {
		k := &block{kind: c.Type, id: c.ID, name: c.Name, start: c.RawJSON()}
		k.text.WriteString(c.Text)
		if c.Type == "tool_use" {
			k.input.Write(c.Input)
		}
		b.blocks = append(b.blocks, k)
	}
	return nil
}

// event takes one event of a stream.
func (b *builder) event(e sdk.MessageStreamEventUnion) {
	switch e.Type {
	case "message_start":
		b.model, b.usage = e.Message.Model, e.Message.Usage
	case "content_block_start":
		c := e.ContentBlock
		k := &block{kind: c.Type, id: c.ID, name: c.Name, start: c.RawJSON()}
		b.blocks = append(b.blocks, k)
		b.open[e.Index] = k
		if c.Type == "tool_use" {
			b.on(agent.Delta{ToolCall: c.Name})
		}
		b.more(k, c.Text, c.Thinking)
		k.signature.WriteString(c.Signature)
	case "content_block_delta":
		k := b.open[e.Index]
		if k == nil { // of a block that never began
			return
		}
		b.more(k, e.Delta.Text, e.Delta.Thinking)
		k.signature.WriteString(e.Delta.Signature)
		k.input.WriteString(e.Delta.PartialJSON)
	case "content_block_stop":
		delete(b.open, e.Index)
	case "message_delta":
		b.stop = string(e.Delta.StopReason)
		u := e.Usage // totals: what is not named keeps its figure
		b.usage.OutputTokens = u.OutputTokens
		if u.JSON.InputTokens.Valid() {
			b.usage.InputTokens = u.InputTokens
		}
		if u.JSON.CacheCreationInputTokens.Valid() {
			b.usage.CacheCreationInputTokens = u.CacheCreationInputTokens
		}
		if u.JSON.CacheReadInputTokens.Valid() {
			b.usage.CacheReadInputTokens = u.CacheReadInputTokens
		}
		if u.JSON.OutputTokensDetails.Valid() {
			b.usage.OutputTokensDetails = u.OutputTokensDetails
		}
	case "message_stop":
		b.ended = true
	}
}

func (b *builder) more(k *block, text, thinking string) {
	if text != "" {
		k.text.WriteString(text)
		if k.kind == "text" {
			b.on(agent.Delta{Text: text})
		}
	}
	if thinking != "" {
		k.thinking.WriteString(thinking)
		b.on(agent.Delta{Thinking: thinking})
	}
}

// reply is what came so far.
func (b *builder) reply() agent.Reply {
	r := agent.Reply{Model: b.model, Stop: reason(b.stop)}
	r.Usage = agent.Usage{
		InputTokens:    b.usage.InputTokens + b.usage.CacheCreationInputTokens + b.usage.CacheReadInputTokens,
		OutputTokens:   b.usage.OutputTokens,
		ThinkingTokens: b.usage.OutputTokensDetails.ThinkingTokens,
		CachedTokens:   b.usage.CacheReadInputTokens,
	}
	r.Message.Role = agent.RoleAssistant
	k := kept{Provider: Name}
	more := false // than text and calls
	var text strings.Builder
	for _, c := range b.blocks {
		id := c.id
		switch c.kind {
		case "text":
			text.WriteString(c.text.String())
			if c.text.Len() == 0 {
				continue // the API sends empty blocks and refuses them
			}
		case "tool_use":
			if id == "" {
				id = provider.CallID(b.req, len(r.Message.ToolCalls))
			}
			args := c.input.String()
			if strings.TrimSpace(args) == "" {
				args = "{}"
			}
			r.Message.ToolCalls = append(r.Message.ToolCalls, agent.ToolCall{ID: id, Name: c.name, Args: args})
		default:
			more = true
		}
		k.Content = append(k.Content, c.json(id))
	}
	r.Message.Text = text.String()
	if more {
		if raw, err := json.Marshal(k); err == nil {
			r.Message.Raw = raw
		}
	}
	return r
}

// json is the block as the API wants it back: as it began, with what was added to it.
func (c *block) json(id string) json.RawMessage {
	added := map[string]any{}
	for key, s := range map[string]*strings.Builder{"text": &c.text, "thinking": &c.thinking, "signature": &c.signature} {
		if s.Len() > 0 {
			added[key] = s.String()
		}
	}
	if c.input.Len() > 0 {
		added["input"] = provider.Arguments(c.input.String())
	}
	if id != c.id {
		added["id"] = id
	}
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(c.start), &m) != nil || m == nil {
		m = map[string]json.RawMessage{}
	}
	changed := false
	for key, value := range added {
		text, err := json.Marshal(value)
		if err != nil {
			continue
		}
		changed = changed || string(m[key]) != string(text)
		m[key] = text
	}
	if !changed && c.start != "" {
		return json.RawMessage(c.start)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

func reason(word string) string {
	switch word {
	case "end_turn", "stop_sequence":
		return agent.StopEnd
	case "tool_use":
		return agent.StopToolCalls
	case "max_tokens", "model_context_window_exceeded":
		return agent.StopLength
	case "refusal":
		return agent.StopFilter
	}
	return word
}

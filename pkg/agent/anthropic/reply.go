package anthropic

import (
	"encoding/json"
	"errors"
	"strings"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// answer is a message of the API.
type answer struct {
	Model      provider.String   `json:"model"`
	Content    []json.RawMessage `json:"content"`
	StopReason provider.String   `json:"stop_reason"`
	Usage      usage             `json:"usage"`
}

// usage counts tokens; what is absent keeps the figure that came before.
type usage struct {
	Input         provider.Count `json:"input_tokens"`
	Output        provider.Count `json:"output_tokens"`
	CacheCreation provider.Count `json:"cache_creation_input_tokens"`
	CacheRead     provider.Count `json:"cache_read_input_tokens"`
	OutputDetail  struct {
		Thinking provider.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// piece is a block, or what is added to one.
type piece struct {
	Type        provider.String `json:"type"`
	ID          provider.String `json:"id"`
	Name        provider.String `json:"name"`
	Text        provider.String `json:"text"`
	Thinking    provider.String `json:"thinking"`
	Signature   provider.String `json:"signature"`
	PartialJSON provider.String `json:"partial_json"`
	Input       json.RawMessage `json:"input"`
	StopReason  provider.String `json:"stop_reason"`
}

// event is one event of a stream.
type event struct {
	Type         provider.String `json:"type"`
	Index        int64           `json:"index"`
	Message      answer          `json:"message"`
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        piece           `json:"delta"`
	Usage        json.RawMessage `json:"usage"`
}

// builder gathers a reply, from one answer or from the events of a stream.
type builder struct {
	req    agent.Request
	on     func(agent.Delta)
	blocks []*block
	open   map[int64]*block // by the index that the API gives
	usage  usage
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
func (b *builder) whole(a *answer) error {
	if a.Content == nil {
		return errors.New("it has no content")
	}
	b.model, b.stop, b.usage, b.ended = string(a.Model), string(a.StopReason), a.Usage, true
	for _, raw := range a.Content {
		c, k := begin(raw)
		k.text.WriteString(string(c.Text))
		if c.Type == "tool_use" {
			k.input.Write(c.Input)
		}
		b.blocks = append(b.blocks, k)
	}
	return nil
}

// begin reads a block as it begins.
func begin(raw json.RawMessage) (piece, *block) {
	var c piece
	if json.Unmarshal(raw, &c) != nil {
		c = piece{} // of a kind that is not known
	}
	return c, &block{kind: string(c.Type), id: string(c.ID), name: string(c.Name), start: string(raw)}
}

// event takes one event of a stream.
func (b *builder) event(e *event) {
	switch e.Type {
	case "message_start":
		b.model, b.usage = string(e.Message.Model), e.Message.Usage
	case "content_block_start":
		c, k := begin(e.ContentBlock)
		b.blocks = append(b.blocks, k)
		b.open[e.Index] = k
		if k.kind == "tool_use" {
			b.on(agent.Delta{ToolCall: k.name})
		}
		b.more(k, string(c.Text), string(c.Thinking))
		k.signature.WriteString(string(c.Signature))
	case "content_block_delta":
		k := b.open[e.Index]
		if k == nil { // of a block that never began
			return
		}
		b.more(k, string(e.Delta.Text), string(e.Delta.Thinking))
		k.signature.WriteString(string(e.Delta.Signature))
		k.input.WriteString(string(e.Delta.PartialJSON))
	case "content_block_stop":
		delete(b.open, e.Index)
	case "message_delta":
		b.stop = string(e.Delta.StopReason)
		b.usage.Output = 0
		if u := b.usage; json.Unmarshal(e.Usage, &u) == nil { // totals
			b.usage = u
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
		InputTokens:    int64(b.usage.Input + b.usage.CacheCreation + b.usage.CacheRead),
		OutputTokens:   int64(b.usage.Output),
		ThinkingTokens: int64(b.usage.OutputDetail.Thinking),
		CachedTokens:   int64(b.usage.CacheRead),
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

package anthropic

import (
	"encoding/json"
	"maps"
	"strings"

	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// usage counts tokens. An absent count keeps its earlier value.
type usage struct {
	Input         provider.Count `json:"input_tokens"`
	Output        provider.Count `json:"output_tokens"`
	CacheCreation provider.Count `json:"cache_creation_input_tokens"`
	CacheRead     provider.Count `json:"cache_read_input_tokens"`
	OutputDetail  struct {
		Thinking provider.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// event is a response, or one event of a stream.
type event struct {
	Type    provider.String `json:"type"`
	Index   int64           `json:"index"`
	Message struct {
		Model provider.String `json:"model"`
		Usage json.RawMessage `json:"usage"`
	} `json:"message"`
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        piece           `json:"delta"`
	Usage        json.RawMessage `json:"usage"`

	// Fields of a response that is not a stream.
	Model      provider.String   `json:"model"`
	Content    []json.RawMessage `json:"content"`
	StopReason provider.String   `json:"stop_reason"`
}

// piece is a block, or an addition to a block.
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

// reader reads a response.
type reader struct {
	*provider.Builder
	blocks []*block
	open   map[int64]*block // by the index in the API
	usage  usage
}

// block is one block of content: its start, and the additions.
type block struct {
	kind                      string
	start                     json.RawMessage
	call                      *provider.Call // the call of a tool_use block
	text, thinking, signature strings.Builder
}

// Read implements [provider.Reader].
func (r *reader) Read(data []byte) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	if !r.Stream {
		r.Ended = e.Content != nil
		if !r.Ended {
			return nil
		}
		r.Model, r.Reason = string(e.Model), string(e.StopReason)
		r.count(e.Usage)
		for _, raw := range e.Content {
			r.begin(raw)
		}
		return nil
	}
	switch e.Type {
	case "message_start":
		r.Model = string(e.Message.Model)
		r.count(e.Message.Usage)
	case "content_block_start":
		r.open[e.Index] = r.begin(e.ContentBlock)
	case "content_block_delta":
		if b := r.open[e.Index]; b != nil { // nil if the stream never started the block
			r.more(b, &e.Delta)
		}
	case "content_block_stop":
		delete(r.open, e.Index)
	case "message_delta":
		r.Reason = string(e.Delta.StopReason)
		r.usage.Output = 0
		r.count(e.Usage) // the counts are totals
	case "message_stop":
		r.Ended = true
	}
	return nil
}

// begin adds a block at its start.
func (r *reader) begin(raw json.RawMessage) *block {
	var p piece
	if json.Unmarshal(raw, &p) != nil {
		p = piece{} // ignore a block of an unknown kind
	}
	b := &block{kind: string(p.Type), start: raw}
	r.blocks = append(r.blocks, b)
	if b.kind == "tool_use" {
		b.call = r.Call(string(p.ID), string(p.Name))
		if !r.Stream {
			b.call.Args.Write(p.Input)
		}
	}
	r.more(b, &p)
	return b
}

func (r *reader) more(b *block, p *piece) {
	b.text.WriteString(string(p.Text))
	b.thinking.WriteString(string(p.Thinking))
	b.signature.WriteString(string(p.Signature))
	if b.kind == "text" {
		r.Text(string(p.Text))
	}
	r.Thinking(string(p.Thinking))
	if b.call != nil {
		b.call.Args.WriteString(string(p.PartialJSON))
	}
}

func (r *reader) count(raw json.RawMessage) {
	if u := r.usage; json.Unmarshal(raw, &u) == nil {
		r.usage = u
	}
	r.Usage = agent.Usage{
		InputTokens:    int64(r.usage.Input + r.usage.CacheCreation + r.usage.CacheRead),
		OutputTokens:   int64(r.usage.Output),
		ThinkingTokens: int64(r.usage.OutputDetail.Thinking),
		CachedTokens:   int64(r.usage.CacheRead),
	}
}

// Kept implements [provider.Reader]. It returns the blocks if there are more than text and calls.
func (r *reader) Kept() *provider.Kept {
	k, more := &provider.Kept{}, false
	for _, b := range r.blocks {
		if b.kind == "text" && b.text.Len() == 0 {
			continue // the API sends empty blocks and refuses them
		}
		if b.call != nil && strings.TrimSpace(b.call.Args.String()) == "" {
			b.call.Args.WriteString("{}")
		}
		k.Content = append(k.Content, b.json())
		more = more || b.kind != "text" && b.kind != "tool_use"
	}
	if !more {
		return nil
	}
	return k
}

// json returns the block as the API needs it back: its start with the additions.
func (b *block) json() json.RawMessage {
	added := map[string]json.RawMessage{}
	for key, s := range map[string]*strings.Builder{"text": &b.text, "thinking": &b.thinking, "signature": &b.signature} {
		if s.Len() > 0 {
			added[key] = jsontext.Quote(s.String())
		}
	}
	if b.call != nil {
		added["id"], added["input"] = jsontext.Quote(b.call.ID), provider.Arguments(b.call.Args.String())
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(b.start, &m) != nil || m == nil {
		m = map[string]json.RawMessage{}
	}
	before := maps.Clone(m)
	maps.Copy(m, added)
	if maps.EqualFunc(before, m, func(a, b json.RawMessage) bool { return string(a) == string(b) }) && len(b.start) > 0 {
		return b.start
	}
	return jsontext.Of(m)
}

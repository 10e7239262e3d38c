package openai

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"

	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// completion is a response, or a chunk of a stream, which has deltas of the message.
type completion struct {
	Model   provider.String `json:"model"`
	Choices []struct {
		Message      json.RawMessage `json:"message"`
		Delta        json.RawMessage `json:"delta"`
		FinishReason provider.String `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     provider.Count `json:"prompt_tokens"`
		CompletionTokens provider.Count `json:"completion_tokens"`
		CompletionDetail struct {
			ReasoningTokens provider.Count `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		PromptDetail struct {
			CachedTokens provider.Count `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
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

// reader reads a response: a message, or deltas that form a message.
type reader struct {
	*provider.Builder
	open    map[int64]*provider.Call // by the index in the API
	refusal strings.Builder
	// Undocumented fields: texts of the message, which come in pieces, other values of the
	// message, and the fields of its calls.
	texts  map[string]*strings.Builder
	values fields
	calls  map[*provider.Call]fields
}

type fields = map[string]json.RawMessage

// Read implements [provider.Reader].
func (r *reader) Read(data []byte) error {
	var c completion
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	if len(c.Choices) == 0 && !r.Stream {
		return nil
	}
	if c.Model != "" {
		r.Model = string(c.Model)
	}
	if u := c.Usage; u != nil {
		r.Usage = agent.Usage{
			InputTokens: int64(u.PromptTokens), OutputTokens: int64(u.CompletionTokens),
			ThinkingTokens: int64(u.CompletionDetail.ReasoningTokens),
			CachedTokens:   int64(u.PromptDetail.CachedTokens),
		}
	}
	if len(c.Choices) == 0 {
		return nil
	}
	choice := c.Choices[0]
	if choice.FinishReason != "" {
		r.Reason, r.Ended = string(choice.FinishReason), true
	}
	raw := choice.Delta
	if !r.Stream {
		raw, r.Ended = choice.Message, true
	}
	if len(raw) == 0 {
		return nil
	}
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	r.extras(raw)
	r.Text(string(m.Content))
	r.refusal.WriteString(string(m.Refusal))
	for i, raw := range m.ToolCalls {
		if err := r.call(int64(i), raw); err != nil {
			return err
		}
	}
	return nil
}

// call adds a piece of a call. Another id at the same index starts another call, because some
// servers give every call the index 0.
func (r *reader) call(index int64, raw json.RawMessage) error {
	var t toolCall
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	if t.Index != nil {
		index = *t.Index
	}
	c, id := r.open[index], string(t.ID)
	if c == nil || id != "" && c.ID != "" && id != c.ID {
		c = r.Call("", "")
		r.open[index], r.calls[c] = c, fields{}
	}
	c.ID = cmp.Or(c.ID, id)
	r.Name(c, string(t.Function.Name))
	args := string(t.Function.Arguments) // some servers write an object
	if args == "null" {
		args = ""
	}
	_ = json.Unmarshal(t.Function.Arguments, &args) // the API sends a string with JSON in it
	c.Args.WriteString(args)
	maps.Copy(r.calls[c], unknown(raw, "id", "type", "function", "index", "custom"))
	return nil
}

func (r *reader) extras(raw json.RawMessage) {
	for k, v := range unknown(raw, "role", "content", "refusal", "tool_calls", "annotations", "audio", "function_call") {
		var text string
		if json.Unmarshal(v, &text) != nil {
			r.values[k] = v // the last value wins
			continue
		}
		if r.texts[k] == nil {
			r.texts[k] = &strings.Builder{}
		}
		r.texts[k].WriteString(text)
		if k == "reasoning_content" || k == "reasoning" {
			r.Thinking(text)
		}
	}
}

// unknown returns the fields of an object without the known ones and without nulls.
func unknown(raw json.RawMessage, known ...string) fields {
	var m fields
	if json.Unmarshal(raw, &m) != nil {
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

// Kept implements [provider.Reader].
func (r *reader) Kept() *provider.Kept {
	if r.refusal.Len() > 0 {
		r.Reason = "refusal"
		if r.Said.Len() == 0 {
			r.Said.WriteString(r.refusal.String())
		}
	}
	k := &provider.Kept{Message: r.values, Calls: map[string]fields{}}
	for name, text := range r.texts {
		if k.Message[name] == nil && text.Len() > 0 {
			k.Message[name] = jsontext.Quote(text.String())
		}
	}
	for c, extra := range r.calls {
		if len(extra) > 0 {
			k.Calls[c.ID] = extra
		}
	}
	if len(k.Message)+len(k.Calls) == 0 {
		return nil
	}
	return k
}

package provider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
)

// Reader reads one answer into the [Builder] that it was made with.
type Reader interface {
	// Read takes an answer, or one event of a stream.
	Read(data []byte) error
	// Kept is called once, after the last Read, when all calls have their ids. It completes
	// the reply, and returns what the provider wants back unchanged; nil for nothing.
	Kept() *Kept
}

// Kept is [agent.Message.Raw]: what a provider wants back unchanged in the next request. Each
// uses fields of its own. They are stored, so their names stay.
type Kept struct {
	Provider string `json:"provider"`
	// Message and Calls are the fields of a message and of its calls, by their ids, that the
	// API of OpenAI does not document.
	Message map[string]json.RawMessage            `json:"message,omitempty"`
	Calls   map[string]map[string]json.RawMessage `json:"calls,omitempty"`
	// Content are the blocks of Anthropic, and Parts the parts of Google.
	Content []json.RawMessage `json:"content,omitempty"`
	Parts   []json.RawMessage `json:"parts,omitempty"`
}

// Restore returns what a provider kept of a message; empty where another one made it.
func Restore(msg agent.Message, name string) Kept {
	var k Kept
	if json.Unmarshal(msg.Raw, &k) != nil || k.Provider != name {
		return Kept{}
	}
	return k
}

// Builder gathers a reply, from one answer or from the events of a stream. Both go through
// it, so that both end in the same reply.
type Builder struct {
	// Stream tells whether the answer comes in events.
	Stream bool
	// Ended tells that the answer is complete.
	Ended bool
	// Model is the model that answered, and Reason the API's word for why it stopped.
	Model, Reason string
	Usage         agent.Usage
	// Said is the text so far.
	Said  strings.Builder
	Parts []v1.Part
	Calls []*Call

	req agent.Request
	on  func(agent.Delta)
}

// Call is a call that the model asks for. One without an ID is given one at the end.
type Call struct {
	ID, Name string
	Args     strings.Builder
}

func newBuilder(req agent.Request, on func(agent.Delta)) *Builder {
	b := &Builder{Stream: on != nil, req: req, on: on}
	if on == nil {
		b.on = func(agent.Delta) {}
	}
	return b
}

// Text takes more of the text.
func (b *Builder) Text(text string) {
	if text != "" {
		b.Said.WriteString(text)
		b.on(agent.Delta{Text: text})
	}
}

// Thinking takes more of the model's thinking.
func (b *Builder) Thinking(text string) {
	if text != "" {
		b.on(agent.Delta{Thinking: text})
	}
}

// Call takes a new call. It may still be without an id and a name.
func (b *Builder) Call(id, name string) *Call {
	c := &Call{ID: id}
	b.Calls = append(b.Calls, c)
	b.Name(c, name)
	return c
}

// Name gives a call its name, unless it has one.
func (b *Builder) Name(c *Call, name string) {
	if c.Name == "" && name != "" {
		c.Name = name
		b.on(agent.Delta{ToolCall: name})
	}
}

// reply is what came so far.
func (b *Builder) reply(name string, reader Reader) agent.Reply {
	r := agent.Reply{Usage: b.Usage, Model: b.Model}
	for i, c := range b.Calls {
		c.ID = cmp.Or(c.ID, callID(b.req, i))
	}
	kept := reader.Kept()
	for _, c := range b.Calls {
		r.Message.ToolCalls = append(r.Message.ToolCalls, agent.ToolCall{ID: c.ID, Name: c.Name, Args: c.Args.String()})
	}
	if kept != nil {
		kept.Provider = name
		if raw, err := json.Marshal(kept); err == nil {
			r.Message.Raw = raw
		}
	}
	r.Stop = stop(b.Reason, len(b.Calls) > 0)
	r.Message.Role, r.Message.Text, r.Message.Parts = agent.RoleAssistant, b.Said.String(), b.Parts
	return r
}

// callID is the name of a call whose provider gave none: its number in the conversation.
func callID(req agent.Request, i int) string {
	for _, m := range req.Messages {
		i += len(m.ToolCalls)
	}
	return fmt.Sprintf("call_%d", i+1)
}

// stops are the words of the APIs for why a model stopped.
var stops = map[string]string{
	"stop": agent.StopEnd, "end_turn": agent.StopEnd, "stop_sequence": agent.StopEnd,
	"tool_calls": agent.StopToolCalls, "function_call": agent.StopToolCalls, "tool_use": agent.StopToolCalls,
	"length": agent.StopLength, "max_tokens": agent.StopLength, "model_context_window_exceeded": agent.StopLength,
	"content_filter": agent.StopFilter, "refusal": agent.StopFilter,
	"safety": agent.StopFilter, "recitation": agent.StopFilter, "blocklist": agent.StopFilter,
	"prohibited_content": agent.StopFilter, "spii": agent.StopFilter, "language": agent.StopFilter,
	"image_safety": agent.StopFilter, "image_prohibited_content": agent.StopFilter, "image_recitation": agent.StopFilter,
}

func stop(word string, calls bool) string {
	known, ok := stops[strings.ToLower(word)]
	switch {
	case !ok:
		return strings.ToLower(word)
	case known == agent.StopEnd && calls: // as some servers say it
		return agent.StopToolCalls
	}
	return known
}

// String is a string of an answer. What is no string is empty: servers that speak an API
// more or less put null or something else there.
type String string

// UnmarshalJSON is [json.Unmarshaler].
func (t *String) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*t = String(s)
	}
	return nil
}

// Count is a number of tokens in an answer. What is no number is 0.
type Count int64

// UnmarshalJSON is [json.Unmarshaler].
func (n *Count) UnmarshalJSON(raw []byte) error {
	var f float64
	if string(raw) != "null" && json.Unmarshal(raw, &f) == nil && f >= 0 && f < 1<<53 {
		*n = Count(f)
	}
	return nil
}

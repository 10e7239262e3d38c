package provider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
)

// Reader reads one response into its [Builder].
type Reader interface {
	// Read reads a response, or one event of a stream.
	Read(data []byte) error
	// Kept is called once after the last Read, when all calls have their ids. It completes the reply, and returns the
	// data that the provider needs back unchanged; nil if the provider needs no data.
	Kept() *Kept
}

// Kept is [agent.Message.Raw]: data that a provider needs back unchanged in the next request.
// Each provider uses its own fields. Saved runs hold them, so their names must not change.
type Kept struct {
	Provider string `json:"provider"`
	// Message and Calls are undocumented fields of OpenAI: fields of a message, and fields of its calls by their ids.
	Message map[string]json.RawMessage            `json:"message,omitempty"`
	Calls   map[string]map[string]json.RawMessage `json:"calls,omitempty"`
	// Content are the blocks of Anthropic, and Parts the parts of Google.
	Content []json.RawMessage `json:"content,omitempty"`
	Parts   []json.RawMessage `json:"parts,omitempty"`
}

// Restore returns the data that a provider kept in a message. The data is empty if another provider made the message.
func Restore(msg agent.Message, name string) Kept {
	var k Kept
	if json.Unmarshal(msg.Raw, &k) != nil || k.Provider != name {
		return Kept{}
	}
	return k
}

// Builder builds a reply from one response or from the events of a stream, so that both give the same reply.
type Builder struct {
	// Stream says that the response is a stream of events.
	Stream bool
	// Ended says that the response is complete.
	Ended bool
	// Model is the name of the model that answered, and Reason is the API's reason why the model stopped.
	Model, Reason string
	Usage         agent.Usage
	// Said is the text so far.
	Said  strings.Builder
	Parts []v1.Part
	Calls []*Call

	req agent.Request
	on  func(agent.Delta)
}

// Call is a call that the model asks for. A call without an ID receives a generated ID at the end.
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

// Text adds to the text.
func (b *Builder) Text(text string) {
	if text != "" {
		b.Said.WriteString(text)
		b.on(agent.Delta{Text: text})
	}
}

// Thinking streams more of the model's thinking.
func (b *Builder) Thinking(text string) {
	if text != "" {
		b.on(agent.Delta{Thinking: text})
	}
}

// Call adds a call. Its id and name may follow later.
func (b *Builder) Call(id, name string) *Call {
	c := &Call{ID: id}
	b.Calls = append(b.Calls, c)
	b.Name(c, name)
	return c
}

// Name sets the name of a call that has no name yet.
func (b *Builder) Name(c *Call, name string) {
	if c.Name == "" && name != "" {
		c.Name = name
		b.on(agent.Delta{ToolCall: name})
	}
}

// reply returns the reply so far.
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

// callID generates an id for a call without one: its number in the conversation.
func callID(req agent.Request, i int) string {
	for _, m := range req.Messages {
		i += len(m.ToolCalls)
	}
	return fmt.Sprintf("call_%d", i+1)
}

// stops maps the stop reasons of the APIs to those of [agent.Reply].
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
	case known == agent.StopEnd && calls: // some servers say "stop" even with calls
		return agent.StopToolCalls
	}
	return known
}

// String is a string in a response. Any other value counts as empty, because servers that
// implement an API only roughly send null or something else.
type String string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *String) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*t = String(s)
	}
	return nil
}

// Count is a number of tokens in a response. Any other value counts as 0.
type Count int64

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Count) UnmarshalJSON(raw []byte) error {
	var f float64
	if string(raw) != "null" && json.Unmarshal(raw, &f) == nil && f >= 0 && f < 1<<53 {
		*n = Count(f)
	}
	return nil
}

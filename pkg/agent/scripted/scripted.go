// Package scripted is a model that says what a script says, for tests, examples and
// dry walks through a prompt. It reaches nothing and is deterministic.
//
//	model := scripted.New([]v1.ModelReply{
//		{ToolCalls: []v1.ModelToolCall{{Tool: "get-weather", Args: json.RawMessage(`{"location":"Oslo"}`)}}},
//		{Text: "Pack a coat."},
//	}, scripted.Options{})
//
// # Scripts
//
// A script is a list of replies, given one a request, in the form of the model's
// replies in a Scenario:
//
//   - text is what the model says, tool_calls what it asks for. The arguments of a call
//     are an object, or a text that is passed on as it is, malformed JSON included.
//   - stop is the reason to stop, error fails the request instead.
//   - sees says what the request must hold: the tools, the tool choice, and texts. A
//     request without it fails with a [MismatchError].
//
// Four bytes of text count as one token.
package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
)

// Options configure a Model; the zero value works.
type Options struct {
	// Ends lets the model say nothing more when the script is over, where it fails by default.
	Ends bool
	// Skip leaves out replies from the beginning, which a run got before it was suspended.
	Skip int
	// Structured lets requests have an output schema, as those of some providers.
	Structured bool
}

// Model is an [agent.Model] that says what a script says. Requests that come at once
// get their replies in an order that nobody knows.
type Model struct {
	// Fixed after New.
	opts    Options
	replies []v1.ModelReply

	mu    sync.Mutex
	next  int
	calls int
}

var _ agent.StructuredModel = (*Model)(nil)

// New returns a model that gives the replies in their order.
func New(replies []v1.ModelReply, o Options) *Model {
	return &Model{opts: o, replies: replies, next: min(max(o.Skip, 0), len(replies))}
}

// Structured implements [agent.StructuredModel]: Options.Structured.
func (m *Model) Structured(json.RawMessage) bool { return m.opts.Structured }

// Generate gives the next reply of the script.
func (m *Model) Generate(ctx context.Context, req agent.Request, on func(agent.Delta)) (agent.Reply, error) {
	if err := ctx.Err(); err != nil {
		return agent.Reply{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.next
	if n >= len(m.replies) {
		if m.opts.Ends {
			return agent.Reply{Message: agent.Message{Role: agent.RoleAssistant}, Stop: agent.StopEnd, Model: req.Model}, nil
		}
		return agent.Reply{}, &agent.ModelError{Provider: Provider, Message: fmt.Sprintf("the script is over: the model is asked for reply %d, and it has %s", n+1, plural(len(m.replies)))}
	}
	m.next++
	script := &m.replies[n]
	if err := sees(script.Sees, req); err != nil {
		err.Reply = n + 1
		return agent.Reply{}, err
	}
	if script.Error != "" {
		return agent.Reply{}, &agent.ModelError{Provider: Provider, Message: script.Error}
	}
	reply := agent.Reply{Message: agent.Message{Role: agent.RoleAssistant, Text: script.Text}, Stop: agent.StopEnd, Model: req.Model}
	size := len(script.Text)
	for _, c := range script.ToolCalls {
		m.calls++
		call := agent.ToolCall{ID: fmt.Sprintf("call-%d", m.calls), Name: c.Tool, Args: written(c.Args)}
		size += len(call.Name) + len(call.Args)
		reply.Message.ToolCalls = append(reply.Message.ToolCalls, call)
		reply.Stop = agent.StopToolCalls
	}
	if script.Stop != "" {
		reply.Stop = script.Stop
	}
	reply.Usage = agent.Usage{InputTokens: tokens(sizeOf(req)), OutputTokens: tokens(size)}
	if on != nil {
		stream(reply.Message, on)
	}
	return reply, nil
}

// Provider is the name of this model's provider.
const Provider = "scripted"

// written is what the model writes as arguments: a text as it is.
func written(args json.RawMessage) string {
	var text string
	if v1.JSONKind(args) == "string" && json.Unmarshal(args, &text) == nil {
		return text
	}
	return string(args)
}

// stream hands out a reply word by word.
func stream(m agent.Message, on func(agent.Delta)) {
	for word := range strings.SplitAfterSeq(m.Text, " ") {
		if word != "" {
			on(agent.Delta{Text: word})
		}
	}
	for _, c := range m.ToolCalls {
		on(agent.Delta{ToolCall: c.Name})
	}
}

func sizeOf(req agent.Request) int {
	n := len(req.System)
	for i := range req.Messages {
		n += len(req.Messages[i].Text)
		for _, c := range req.Messages[i].ToolCalls {
			n += len(c.Name) + len(c.Args)
		}
	}
	return n
}

func tokens(size int) int64 {
	const perToken = 4
	return int64((size + perToken - 1) / perToken)
}

func plural(n int) string {
	if n == 1 {
		return "1 reply"
	}
	return fmt.Sprintf("%d replies", n)
}

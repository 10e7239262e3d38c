// Package scripted is a model that gives the replies of a script, for tests, examples and
// dry runs of a prompt. It makes no network requests and is deterministic.
//
//	model := scripted.New([]v1.ModelReply{
//		{ToolCalls: []v1.ModelToolCall{{Tool: "get-weather", Args: json.RawMessage(`{"location":"Oslo"}`)}}},
//		{Text: "Pack a coat."},
//	}, scripted.Options{})
//
// # Scripts
//
// A script is a list of replies, one for each request. They have the form of the model's
// replies in a Scenario:
//
//   - text is the text of the reply, and tool_calls are its calls. The arguments of a call
//     are an object, or a text that is passed on unchanged, even if it is malformed JSON.
//   - stop is the reason to stop; error fails the request instead.
//   - sees states what the request must contain: the tools, the tool choice, and texts. Any
//     other request fails with a [MismatchError].
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
	// Ends makes the model reply with empty texts after the end of the script. Default: it fails.
	Ends bool
	// Skip is the number of replies to skip, because a run used them before it was suspended.
	Skip int
	// Structured accepts output schemas in requests, as some providers do.
	Structured bool
}

// Model is an [agent.Model] that gives the replies of a script. Concurrent requests get
// their replies in an undefined order.
type Model struct {
	// Fixed after New.
	opts    Options
	replies []v1.ModelReply

	mu    sync.Mutex
	next  int
	calls int
}

var _ agent.StructuredModel = (*Model)(nil)

// New returns a model that gives the replies in order.
func New(replies []v1.ModelReply, o Options) *Model {
	return &Model{opts: o, replies: replies, next: min(max(o.Skip, 0), len(replies))}
}

// Structured implements [agent.StructuredModel]. It returns Options.Structured.
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

// written returns the arguments as the model writes them: a text unchanged.
func written(args json.RawMessage) string {
	var text string
	if v1.JSONKind(args) == "string" && json.Unmarshal(args, &text) == nil {
		return text
	}
	return string(args)
}

// stream sends a reply word by word.
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

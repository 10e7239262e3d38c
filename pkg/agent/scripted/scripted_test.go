package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/scripted"
)

func TestGenerate(t *testing.T) {
	model := scripted.New([]v1.ModelReply{
		{Text: "let me look", ToolCalls: []v1.ModelToolCall{{Tool: "get", Args: json.RawMessage(`{"a":1}`)}, {Tool: "get", Args: json.RawMessage(`"{\"a\": "`)}}},
		{Text: "done", Stop: agent.StopLength},
		{Error: "overloaded"},
	}, scripted.Options{})
	var heard []string
	on := func(d agent.Delta) { heard = append(heard, d.Text+d.ToolCall) }
	first, err := model.Generate(t.Context(), agent.Request{Model: "m"}, on)
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Reply{Model: "m", Stop: agent.StopToolCalls, Usage: agent.Usage{OutputTokens: 8},
		Message: agent.Message{Role: agent.RoleAssistant, Text: "let me look", ToolCalls: []agent.ToolCall{{ID: "call-1", Name: "get", Args: `{"a":1}`}, {ID: "call-2", Name: "get", Args: `{"a": `}}}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"let ", "me ", "look", "get", "get"}, heard); diff != "" {
		t.Error(diff)
	}
	second, err := model.Generate(t.Context(), agent.Request{}, nil)
	if err != nil || second.Message.Text != "done" || second.Stop != agent.StopLength {
		t.Errorf("%+v, %v", second, err)
	}
	for _, want := range []string{"scripted: overloaded", "scripted: the script is over: the model is asked for reply 4, and it has 3 replies"} {
		if _, err = model.Generate(t.Context(), agent.Request{}, nil); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := model.Generate(ended, agent.Request{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestEnds(t *testing.T) {
	reply, err := scripted.New(nil, scripted.Options{Ends: true}).Generate(t.Context(), agent.Request{}, nil)
	if err != nil || reply.Stop != agent.StopEnd || reply.Message.Text != "" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestSees(t *testing.T) {
	req := agent.Request{System: "be brief", Tools: []agent.ToolSpec{{Name: "a"}, {Name: "b"}}, ToolChoice: v1.ToolChoiceRequired,
		Messages: []agent.Message{{Role: agent.RoleUser, Text: "hello"}}}
	later := req
	later.Messages = append(later.Messages[:1:1], agent.Message{Role: agent.RoleAssistant, Text: "calling"}, agent.Message{Role: agent.RoleTool, Text: "4 degrees"})
	for _, tc := range []struct {
		name string
		sees v1.ModelSees
		req  agent.Request
		want string
	}{
		{name: "all of it", req: req, sees: v1.ModelSees{Tools: []string{"b", "a"}, ToolChoice: "required", Contains: []string{"hello", "be brief"}, Lacks: []string{"bye"}}},
		{name: "tools", req: req, sees: v1.ModelSees{Tools: []string{"a"}}, want: "reply 1 of the script: sees.tools: expected a, got a, b"},
		{name: "no tools", req: req, sees: v1.ModelSees{Tools: []string{}}, want: "reply 1 of the script: sees.tools: expected no tools, got a, b"},
		{name: "choice", req: req, sees: v1.ModelSees{ToolChoice: "none"}, want: "reply 1 of the script: sees.tool_choice: expected none, got required"},
		{name: "an absent choice is auto", req: agent.Request{}, sees: v1.ModelSees{ToolChoice: "auto"}},
		{name: "contains", req: req, sees: v1.ModelSees{Contains: []string{"hello", "bye"}}, want: `reply 1 of the script: sees.contains: expected a text with "bye", got "be brief\nhello"`},
		{name: "lacks", req: req, sees: v1.ModelSees{Lacks: []string{"hello"}}, want: `reply 1 of the script: sees.lacks: expected a text without "hello", got "be brief\nhello"`},
		{name: "what is new only", req: later, sees: v1.ModelSees{Contains: []string{"4 degrees"}, Lacks: []string{"hello", "calling", "be brief"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := scripted.New([]v1.ModelReply{{Text: "x", Sees: &tc.sees}}, scripted.Options{}).Generate(t.Context(), tc.req, nil)
			got := ""
			if err != nil {
				got = err.Error()
				if !errors.As(err, new(*scripted.MismatchError)) {
					t.Errorf("%T", err)
				}
			}
			if got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		replies      int
		want         string
	}{
		{name: "a list", script: `[{"text":"a"},{"tool_calls":[{"tool":"get"}]}]`, replies: 2},
		{name: "an object", script: `{"replies":[{"text":"a"}]}`, replies: 1},
		{name: "empty", script: `[]`},
		{name: "a text", script: `"a"`, want: "expected a list of replies with text or tool_calls, got string"},
		{name: "another object", script: `{"turns":[]}`, want: `turns: unknown field "turns": expected replies`},
		{name: "an unknown field", script: `[{"txt":"a"}]`, want: `0: reply 1: unknown field "txt"; a reply has text, tool_calls, stop, error and sees`},
		{name: "a text that is a list", script: `[{"text":"a"},{"text":[1]}]`, want: `/1/text: reply 2: expected string, got array; a reply has text, tool_calls, stop, error and sees`},
		{name: "calls that are a text", script: `{"replies":[{"tool_calls":"get"}]}`, want: `/replies/0/tool_calls: reply 1: expected array, got string; a reply has`},
		{name: "a name that is a number", script: `[{"tool_calls":[{"tool":5}]}]`, want: `/0/tool_calls/tool: reply 1: expected string, got number; a reply has`},
		{name: "a reply that is a number", script: `[5]`, want: `/0: reply 1: expected object, got number; a reply has`},
		{name: "a call without a name", script: `[{"tool_calls":[{"args":{}}]}]`, want: `/0/tool_calls/0/tool: required field "tool" is missing`},
		{name: "an unknown stop", script: `{"replies":[{"stop":"bored"}]}`, want: `/replies/0/stop: unknown value "bored": expected one of end, tool_calls, length, filter`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			replies, violations := scripted.Parse(json.RawMessage(tc.script))
			switch {
			case tc.want == "" && (len(violations) > 0 || len(replies) != tc.replies):
				t.Errorf("%d replies, errors %v", len(replies), violations)
			case tc.want != "" && (len(violations) != 1 || !strings.Contains(violations[0].String(), tc.want)):
				t.Errorf("errors %v, want %s", violations, tc.want)
			}
		})
	}
}

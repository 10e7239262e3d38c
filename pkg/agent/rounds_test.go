package agent_test

import (
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/registry"
)

const files = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: read}
spec:
  description: Reads a file
  input_schema: {type: object, properties: {path: {type: string}}}
  hints: {read_only: true}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: cached}
spec:
  description: Reads a file that seldom changes
  input_schema: {type: object}
  cache: {ttl: 1h}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: write}
spec:
  description: Writes a file
  input_schema: {type: object, properties: {path: {type: string}}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: remove}
spec:
  description: Removes a file
  input_schema: {type: object, properties: {path: {type: string}}}
  hints: {destructive: true}
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: work}
spec:
  template: Go.
  tools: [read, cached, write, remove, deep]
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: deep}
spec:
  template: Go deeper.
  tools: [write]
`

// TestReadsAfterAWrite checks that a result is fetched again after a call of a tool that is not read-only.
func TestReadsAfterAWrite(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		calls        map[string]int
	}{
		{"read, read", `[{tool_calls: [{tool: read}]}, {tool_calls: [{tool: read}]}, {text: done}]`, map[string]int{"read": 1}},
		{"read, write, read", `[{tool_calls: [{tool: read}]}, {tool_calls: [{tool: write}]}, {tool_calls: [{tool: read}]}, {text: done}]`, map[string]int{"read": 2}},
		{"read, read something else, read", `[{tool_calls: [{tool: read}]}, {tool_calls: [{tool: read, args: {path: x}}]}, {tool_calls: [{tool: read}]}, {text: done}]`, map[string]int{"read": 2}},
		{"with a cache", `[{tool_calls: [{tool: cached}]}, {tool_calls: [{tool: cached}]}, {tool_calls: [{tool: write}]}, {tool_calls: [{tool: cached}]}, {text: done}]`, map[string]int{"cached": 2}},
		{"a tool with a cache writes nothing", `[{tool_calls: [{tool: read}]}, {tool_calls: [{tool: cached}]}, {tool_calls: [{tool: read}]}, {text: done}]`, map[string]int{"read": 1}},
		{"side by side", `[{tool_calls: [{tool: read}, {tool: write}, {tool: read}]}, {tool_calls: [{tool: read}]}, {text: done}]`, map[string]int{"read": 3}},
		{"in a prompt that is called", `[{tool_calls: [{tool: read}]}, {tool_calls: [{tool: deep}]}, {tool_calls: [{tool: write}]}, {text: inner}, {tool_calls: [{tool: read}]}, {text: done}]`, map[string]int{"read": 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCounting(0)
			w := newWorld(t, files, registry.Options{Executors: []registry.Executor{c}})
			if _, err := w.run("work", `{}`, tc.script, agent.Options{}); err != nil {
				t.Fatal(err)
			}
			for name, want := range tc.calls {
				if c.calls[name] != want {
					t.Errorf("%s was called %d times, want %d", name, c.calls[name], want)
				}
			}
		})
	}
}

// TestRounds checks that a run has at most MaxHops rounds of calls before the answer.
func TestRounds(t *testing.T) {
	w := newWorld(t, files, registry.Options{Executors: []registry.Executor{newCounting(0)}})
	script := func(rounds int) string {
		var b strings.Builder
		b.WriteString("[")
		for range rounds {
			b.WriteString("{tool_calls: [{tool: write}, {tool: nobody}]}, ")
		}
		return b.String() + "{text: done}]"
	}
	if res, err := w.run("work", `{}`, script(3), agent.Options{MaxHops: 3}); err != nil || res.Text != "done" || len(res.Hops) != 4 {
		t.Errorf("%v, %+v", err, res)
	}
	if _, err := w.run("work", `{}`, script(4), agent.Options{MaxHops: 3}); err == nil || !strings.Contains(err.Error(), "no answer after 3 hops") {
		t.Errorf("%v", err)
	}
}

// TestRepliesThatWereCutOff checks that no call of a reply that the API marks as cut off is made, and that incomplete
// arguments are closed, except for a destructive tool.
func TestRepliesThatWereCutOff(t *testing.T) {
	c := newCounting(0)
	w := newWorld(t, files, registry.Options{Executors: []registry.Executor{c}})
	res, err := w.run("work", `{}`, `[
		{stop: length, tool_calls: [{tool: write, args: {path: a}}, {tool: write, args: '{"path": "b'}]},
		{stop: length, text: '<tool_call>{"name":"write","arguments":{"path":"c"}}</tool_call>'},
		{tool_calls: [{tool: write, args: '{"path": "/tmp/'}, {tool: remove, args: '{"path": "/tmp/'}, {tool: write, args: '{"path": "C:\'}]},
		{text: done}]`, agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for hop, want := range [][]string{{"reply_cut_off", "reply_cut_off"}, {"reply_cut_off"}, {"", v1.ArgsInvalid, v1.ArgsInvalid}} {
		for i, typ := range want {
			e := res.Hops[hop].Calls[i].Result.Error
			if (e == nil) != (typ == "") || e != nil && e.Type != typ {
				t.Errorf("hop %d, call %d: %+v, want %q", hop+1, i+1, e, typ)
			}
		}
	}
	if got := res.Hops[2].Calls[0]; got.Result.Repair != v1.RepairClosed || string(got.Args) != `{"path":"/tmp/"}` {
		t.Errorf("%+v", got)
	}
	if c.calls["write"] != 1 || c.calls["remove"] != 0 {
		t.Errorf("%v", c.calls)
	}
}

// TestSubmitOutputIsReserved checks that no tool and no prompt may have this name.
func TestSubmitOutputIsReserved(t *testing.T) {
	for _, o := range []v1.Object{
		&v1.Tool{Header: v1.Header{Kind: v1.KindTool, Metadata: v1.Metadata{Name: v1.SubmitOutput}}},
		&v1.Prompt{Header: v1.Header{Kind: v1.KindPrompt, Metadata: v1.Metadata{Name: v1.SubmitOutput}}},
	} {
		found := false
		for _, v := range o.Validate() {
			found = found || v.Path == "/metadata/name" && strings.Contains(v.Message, "reserved")
		}
		if !found {
			t.Errorf("%s: %v", o.Head().Kind, o.Validate())
		}
	}
}

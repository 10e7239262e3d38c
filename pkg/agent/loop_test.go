package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/scripted"
	"toolctl.dev/toolctl/pkg/registry"
)

const more = tools + `
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: rate}
spec:
  description: A rate
  cache: {ttl: 1m}
  input_schema: {type: object}
  mock_result: {rate: 11}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: login}
spec:
  description: Signs in
  redact: [password]
  input_schema: {type: object, properties: {password: {type: string}}}
  mock_template: '{"password": "{{.password}}"}'
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: visa}
spec:
  description: Needs approval
  input_schema: {type: object, properties: {city: {type: string}}}
  mock_result: {visa: true}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {require_approval: [visa]}
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: all}
spec:
  template: Go.
  tools: [get-weather, book, rate, login, visa, advice]
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: outer}
spec:
  template: Go.
  tools: [all]
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: list}
spec:
  template: Go.
  output: {type: array, items: {type: integer}}
`

// counting counts the calls of tools and the maximum number of concurrent calls. It holds calls until hold of them
// run.
type counting struct {
	registry.Executor
	mu         sync.Mutex
	calls      map[string]int
	now, most  int
	hold       int
	everything chan struct{}
	met        sync.Once
}

func (c *counting) Execute(ctx context.Context, tool *v1.Tool, args json.RawMessage) (v1.Result, error) {
	c.mu.Lock()
	c.calls[tool.Metadata.Name]++
	c.now++
	c.most = max(c.most, c.now)
	if c.now == c.hold {
		c.met.Do(func() { close(c.everything) })
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now--
		c.mu.Unlock()
	}()
	if c.hold > 0 {
		select {
		case <-c.everything:
		case <-ctx.Done():
			return v1.Result{}, ctx.Err()
		}
	}
	return v1.Result{Content: json.RawMessage(`{"ok":true}`), Attempts: 1}, nil
}

func (c *counting) Name() string { return v1.ModeMock }

func newCounting(hold int) *counting {
	return &counting{calls: map[string]int{}, hold: hold, everything: make(chan struct{})}
}

func TestCallsRunSideBySide(t *testing.T) {
	c := newCounting(4) // deadlocks unless four run at once
	w := newWorld(t, more, registry.Options{Executors: []registry.Executor{c}})
	var calls []string
	for i := range 12 {
		calls = append(calls, fmt.Sprintf("{tool: book, args: {city: c%02d}}", i))
	}
	var mu sync.Mutex
	events := map[string]int{}
	res, err := w.run("all", `{}`, "[{tool_calls: ["+strings.Join(calls, ", ")+"]}, {text: done}]", agent.Options{On: func(e agent.Event) {
		if !mu.TryLock() {
			t.Error("two events at once")
			return
		}
		defer mu.Unlock()
		events[e.Kind]++
	}})
	if err != nil {
		t.Fatal(err)
	}
	if c.most > 4 {
		t.Errorf("%d calls ran at once, want at most 4", c.most)
	}
	for i, call := range res.Hops[0].Calls {
		if want := fmt.Sprintf(`{"city":"c%02d"}`, i); string(call.Args) != want || res.Messages[2+i].ToolCallID != call.ID {
			t.Errorf("call %d is %s, want %s", i, call.Args, want)
		}
	}
	if diff := cmp.Diff(map[string]int{agent.EventHop: 2, agent.EventReply: 2, agent.EventCall: 12, agent.EventResult: 12}, events); diff != "" {
		t.Error(diff)
	}
}

func TestPromptsRunSideBySide(t *testing.T) {
	c := newCounting(2) // each of two prompts makes one call at the same time
	w := newWorld(t, more, registry.Options{Executors: []registry.Executor{c}})
	sub := 0
	var mu sync.Mutex
	m := modelFunc(func(req agent.Request) agent.Reply {
		mu.Lock()
		defer mu.Unlock()
		last := req.Messages[len(req.Messages)-1]
		switch {
		case last.Role == agent.RoleTool:
			return says("done")
		case strings.HasPrefix(last.Text, "What should I pack"):
			sub++
			return asks("book", fmt.Sprintf(`{"city":"c%d"}`, sub))
		}
		r := asks("advice", `{"city":"Oslo"}`)
		r.Message.ToolCalls = append(r.Message.ToolCalls, agent.ToolCall{ID: "b", Name: "advice", Args: `{"city":"Bergen"}`})
		return r
	})
	res, err := w.run("all", `{}`, "", agent.Options{Model: m})
	if err != nil || res.Text != "done" || c.calls["book"] != 2 {
		t.Errorf("%v: %s, %v", err, res.Text, c.calls)
	}
	if res.Requests() != 6 {
		t.Errorf("%d requests, want 6", res.Requests())
	}
}

type modelFunc func(agent.Request) agent.Reply

func (f modelFunc) Generate(ctx context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	return f(req), ctx.Err()
}

func says(text string) agent.Reply {
	return agent.Reply{Message: agent.Message{Text: text}, Stop: agent.StopEnd}
}

func asks(tool, args string) agent.Reply {
	return agent.Reply{Message: agent.Message{ToolCalls: []agent.ToolCall{{ID: "a", Name: tool, Args: args}}}, Stop: agent.StopToolCalls}
}

func TestErrors(t *testing.T) {
	manyCalls := agent.Reply{Message: agent.Message{ToolCalls: make([]agent.ToolCall, 65)}}
	for _, tc := range []struct {
		name   string
		prompt string
		script string
		opts   agent.Options
		want   string
		typ    string
	}{
		{name: "hops", script: `[{tool_calls: [{tool: rate}]}, {text: one, tool_calls: [{tool: rate}]}]`, opts: agent.Options{MaxHops: 1}, want: "no answer after 1 hop: the model still asks for rate", typ: "tool_hops"},
		{name: "model", script: `[{error: overloaded}]`, want: `prompt "all": hop 1: scripted: overloaded`, typ: "model_failed"},
		{name: "calls of a run", script: `[{tool_calls: [{tool: book, args: {city: a}}, {tool: book, args: {city: b}}]}]`, opts: agent.Options{MaxCalls: 1}, want: "the run was stopped: 2 calls in one run, and at most 1 are allowed", typ: "limit_reached"},
		{name: "calls of a reply", opts: agent.Options{Model: modelFunc(func(agent.Request) agent.Reply { return manyCalls })}, want: "the run was stopped: 65 calls in one reply, and at most 64 are allowed", typ: "limit_reached"},
		{name: "reply", opts: agent.Options{Model: modelFunc(func(agent.Request) agent.Reply { return says(strings.Repeat("x", 1<<20+1)) })}, want: "the run was stopped: 1048577 bytes in one reply, and at most 1048576 are allowed", typ: "limit_reached"},
		{name: "transcript", script: `[{text: a long text, tool_calls: [{tool: rate}]}]`, opts: agent.Options{MaxTranscriptBytes: 20}, want: "the run was stopped: 90 bytes of transcript, and at most 20 are allowed", typ: "limit_reached"},
		{name: "panic", opts: agent.Options{Model: modelFunc(func(agent.Request) agent.Reply { panic("oops") })}, want: "the model panicked: oops", typ: "internal"},
		{name: "variables", prompt: "advice", want: "invalid arguments: /city: ", typ: v1.ArgsInvalid, script: "[]"},
		{name: "answer", prompt: "list", script: `[{text: "[1, x]"}, {text: "[true]"}]`, want: `prompt "list": the answer does not fit its output schema: /0: `, typ: v1.ResultInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, more, registry.Options{})
			if tc.prompt == "" {
				tc.prompt = "all"
			}
			res, err := w.run(tc.prompt, `{}`, tc.script, tc.opts)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Fatalf("got %v, want %s", err, tc.want)
			}
			if res.Status != agent.Failed || res.Error == nil || res.Error.Type != tc.typ {
				t.Errorf("%s, %+v", res.Status, res.Error)
			}
			if tc.name == "hops" {
				var hops *agent.ToolHopsError
				if !errors.As(err, &hops) || hops.Hops != 1 || hops.LastReply.Message.Text != "one" || res.Text != "one" {
					t.Errorf("%+v", hops)
				}
			}
		})
	}
}

func TestCancel(t *testing.T) {
	c := newCounting(2) // waits for a second call that never comes
	w := newWorld(t, more, registry.Options{Executors: []registry.Executor{c}})
	ctx, cancel := context.WithCancel(t.Context())
	res, err := agent.Run(ctx, w.reg, w.prompt("all"), nil, agent.Options{Model: model(t, `[{tool_calls: [{tool: rate}]}, {text: done}]`), On: func(e agent.Event) {
		if e.Kind == agent.EventCall {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || res.Error.Type != v1.TypeCancelled || len(res.Hops) != 1 {
		t.Errorf("%v, %+v", err, res)
	}
}

func TestStream(t *testing.T) {
	w := newWorld(t, more, registry.Options{})
	var said strings.Builder
	_, err := w.run("all", `{}`, `[{text: hello there}]`, agent.Options{Stream: true, On: func(e agent.Event) { said.WriteString(e.Delta.Text) }})
	if err != nil || said.String() != "hello there" {
		t.Errorf("%v, %q", err, said.String())
	}
}

func TestMemo(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name  string
		opts  agent.Options
		later time.Duration
		want  int
	}{
		{name: "of a run", want: 2},
		{name: "shared", opts: agent.Options{Memo: agent.NewMemo()}, want: 1},
		{name: "too old", opts: agent.Options{Memo: agent.NewMemo()}, later: time.Minute, want: 2},
		{name: "off", opts: agent.Options{Memo: agent.NewMemo(), NoCache: true}, want: 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCounting(0)
			w := newWorld(t, more, registry.Options{Executors: []registry.Executor{c}})
			at := now
			tc.opts.Now = func() time.Time { return at }
			for range 2 {
				// The script makes two calls at once, and then one more.
				res, err := w.run("all", `{}`, `[{tool_calls: [{tool: rate}, {tool: rate}]}, {tool_calls: [{tool: rate, args: {}}]}, {text: done}]`, tc.opts)
				if err != nil {
					t.Fatal(err)
				}
				if got := res.Hops[1].Calls[0].Cached; got == tc.opts.NoCache {
					t.Errorf("cached: %v", got)
				}
				at = at.Add(tc.later)
			}
			if c.calls["rate"] != tc.want {
				t.Errorf("called %d times, want %d", c.calls["rate"], tc.want)
			}
		})
	}
}

func TestRedaction(t *testing.T) {
	w := newWorld(t, more, registry.Options{})
	res, err := w.run("all", `{}`, `[{tool_calls: [{tool: login, args: {password: hunter2}}]}, {tool_calls: [{tool: login, args: "{password: hunter2"}]}, {text: done}]`, agent.Options{On: func(e agent.Event) {
		if e.Call != nil && strings.Contains(string(e.Call.Args), "hunter2") {
			t.Error("an event shows the secret")
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(res)
	if err != nil || strings.Contains(string(raw), "hunter2") {
		t.Errorf("%v: %s", err, raw)
	}
}

func TestNativeOutput(t *testing.T) {
	w := newWorld(t, more, registry.Options{})
	m := scripted.New(replies(t, "[{sees: {tools: []}, text: \"```json\\n[1, 2]\\n```\"}]"), scripted.Options{Structured: true})
	res, err := w.run("list", `{}`, "", agent.Options{Model: m})
	if err != nil || string(res.Output) != "[1, 2]" {
		t.Errorf("%v, %s", err, res.Output)
	}
	res, err = w.run("list", `{}`, `[{sees: {tools: [submit_output], tool_choice: required}, tool_calls: [{tool: submit_output, args: {output: [3]}}]}]`, agent.Options{})
	if err != nil || string(res.Output) != "[3]" {
		t.Errorf("%v, %s", err, res.Output)
	}
}

// deciding is an Approvals that stores one decision.
type deciding struct {
	registry.MemoryApprovals
	mu  sync.Mutex
	yes *bool
}

func (d *deciding) TakeApproval(ctx context.Context, p v1.PendingCall, name string) (v1.PendingCall, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, err := d.MemoryApprovals.TakeApproval(ctx, p, name)
	if err == nil && d.yes != nil {
		err = found.Decide(v1.Decision{Approved: *d.yes, By: "ann"}, p.Created)
	}
	return found, err
}

func TestResume(t *testing.T) {
	d := &deciding{}
	c := newCounting(0)
	w := newWorld(t, more, registry.Options{Executors: []registry.Executor{c}, Approvals: d})
	dir := filepath.Join(t.TempDir(), "runs")
	states := agent.Folder(dir)
	script := `
- {tool_calls: [{tool: all}]}
- {tool_calls: [{tool: book, args: {city: a}}, {tool: visa, args: {city: b}}]}
- {text: inner}
- {error: overloaded}
- {sees: {contains: ['"inner"']}, text: outer}`
	res, err := w.run("outer", `{}`, script, agent.Options{States: states})
	if err != nil || res.Status != agent.Pending || len(res.Pending) != 1 || res.Pending[0].ToolName != "visa" {
		t.Fatalf("%v, %+v", err, res)
	}
	file := filepath.Join(dir, res.ID+".json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	resume := func(skip int) (agent.Result, error) {
		return agent.Resume(t.Context(), w.reg, res.ID, agent.Options{Model: scripted.New(replies(t, script), scripted.Options{Skip: skip}), States: states})
	}
	if still, err := resume(2); err != nil || still.Status != agent.Pending {
		t.Fatalf("nobody decided: %v, %+v", err, still)
	}
	yes := true
	d.mu.Lock()
	d.yes = &yes
	d.mu.Unlock()
	failed, err := resume(2)
	if err == nil || !strings.Contains(err.Error(), "overloaded") || failed.Status != agent.Failed {
		t.Fatalf("the model fails: %v", err)
	}
	done, err := resume(4)
	if err != nil || done.Text != "outer" || done.Status != agent.Complete {
		t.Fatalf("%v, %+v", err, done)
	}
	if diff := cmp.Diff(map[string]int{"book": 1, "visa": 1}, c.calls); diff != "" {
		t.Error(diff)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := resume(4); err == nil || err.Error() != `run "`+res.ID+`" not found` {
		t.Errorf("a run that is over: %v", err)
	}
}

func TestFolder(t *testing.T) {
	ctx := t.Context()
	f := agent.Folder(t.TempDir())
	for _, id := range []string{"", "../x", "a/b", "a.b", strings.Repeat("A", 65)} {
		if err := f.Save(ctx, id, nil); !errors.As(err, new(*v1.NotFoundError)) {
			t.Errorf("id %q: %v", id, err)
		}
		if _, err := f.Take(ctx, id); !errors.As(err, new(*v1.NotFoundError)) {
			t.Errorf("id %q: %v", id, err)
		}
	}
	if err := f.Save(ctx, "RUN1", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Take(ctx, "RUN1"); err != nil || string(got) != "one" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := f.Take(ctx, "RUN1"); err == nil || !strings.HasPrefix(err.Error(), "run RUN1 is being resumed already") {
		t.Errorf("taken twice: %v", err)
	}
	if err := f.Save(ctx, "RUN1", []byte("two")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Take(ctx, "RUN2"); err == nil || err.Error() != `run "RUN2" not found; did you mean "RUN1"?` {
		t.Error(err)
	}
	if got, err := f.Take(ctx, "RUN1"); err != nil || string(got) != "two" {
		t.Errorf("%s, %v", got, err)
	}
	if err := f.Drop(ctx, "RUN1"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(string(f)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestRegistryIsReadAtEveryHop(t *testing.T) {
	w := newWorld(t, more, registry.Options{})
	hop := 0
	m := modelFunc(func(req agent.Request) agent.Reply {
		if hop++; hop == 1 {
			if err := w.reg.Unregister(v1.Key{Kind: v1.KindTool, Namespace: "default", Name: "book"}); err != nil {
				t.Error(err)
			}
			return asks("rate", "{}")
		}
		for _, s := range req.Tools {
			if s.Name == "book" {
				t.Error("a tool that is gone is offered")
			}
		}
		return says("done")
	})
	res, err := w.run("advice", `{"city":"Oslo"}`, "", agent.Options{Model: m})
	if err != nil || len(res.Warnings) != 1 || res.Warnings[0] != `tool "book" not found` {
		t.Errorf("%v, %q", err, res.Warnings)
	}
}

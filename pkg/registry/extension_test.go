package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/validate"
	"toolctl.dev/toolctl/schemas"
)

// queue is a program's executor that puts its arguments into a queue.
type queue struct{}

func (queue) Name() string { return "queue" }

func (queue) Extension() v1.Extension {
	return v1.Extension{
		Description: "queue puts the arguments into a queue.",
		Schema: json.RawMessage(`{"type":"object","required":["topic"],"properties":{
			"topic":{"type":"string","description":"topic is the name of the queue.","examples":["orders"]},
			"priority":{"type":"string","enum":["low","high"],"default":"low"},
			"retry":{"$ref":"#/$defs/retry"}},
			"$defs":{"retry":{"type":"object","properties":{"times":{"type":"integer","minimum":0}}}}}`),
	}
}

func (queue) Execute(_ context.Context, t *v1.Tool, args json.RawMessage) (v1.Result, error) {
	var block struct{ Topic string }
	if err := json.Unmarshal(t.Spec.Extensions["queue"], &block); err != nil {
		return v1.Result{}, err
	}
	out, err := json.Marshal(map[string]any{"topic": block.Topic, "args": args})
	return v1.Result{Content: out, Attempts: 1}, err
}

// plain is an executor without a block.
type plain struct{ name string }

func (p plain) Name() string { return p.name }

func (p plain) Execute(context.Context, *v1.Tool, json.RawMessage) (v1.Result, error) {
	return v1.Result{Content: json.RawMessage(`"` + p.name + `"`), Attempts: 1}, nil
}

// read reads a manifest with the extensions of the executors and rules.
func read(t *testing.T, text string, o registry.Options) ([]v1.Object, []v1.Violation) {
	t.Helper()
	extensions, err := registry.Extensions(o.Executors, o.Rules)
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Decode("tool.yaml", []byte(text), manifest.Options{Extensions: extensions})
}

// problems returns the violations that the reader and the registry find in a manifest.
func problems(t *testing.T, text string, o registry.Options) []string {
	t.Helper()
	objects, violations := read(t, text, o)
	reg := newRegistry(t, o, objects...)
	violations = append(violations, reg.Check(t.Context())...)
	var got []string
	for _, v := range violations {
		got = append(got, v.String())
	}
	return got
}

const queued = `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: order}
spec:
  description: Takes an order
  input_schema: {type: object}
`

func TestAManifestChoosesAnExecutorOfTheProgram(t *testing.T) {
	o := registry.Options{Executors: []registry.Executor{queue{}, plain{"clock"}}}
	for _, tt := range []struct{ name, spec, want string }{
		{"by mode and block", "  mode: queue\n  queue: {topic: orders}\n", `{"args":{"n":1},"topic":"orders"}`},
		{"by the block alone", "  queue: {topic: refunds}\n", `{"args":{"n":1},"topic":"refunds"}`},
		{"without a block", "  mode: clock\n", `"clock"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects, violations := read(t, queued+tt.spec, o)
			if len(violations) > 0 {
				t.Fatal(violations)
			}
			// The block is also stored and printed.
			data, err := json.Marshal(objects[0])
			if err != nil {
				t.Fatal(err)
			}
			again := new(v1.Tool)
			if err := json.Unmarshal(data, again); err != nil {
				t.Fatal(err)
			}
			reg := newRegistry(t, o, again)
			res, err := reg.Execute(t.Context(), v1.Call{Tool: "order", Args: json.RawMessage(`{"n":1}`)})
			if err != nil || string(res.Content) != tt.want {
				t.Errorf("got %s, %v; want %s", res.Content, err, tt.want)
			}
			if yaml, err := manifest.MarshalYAML(again); err != nil {
				t.Error(err)
			} else if back, violations := read(t, string(yaml), o); len(violations) > 0 || !cmp.Equal(back[0].(*v1.Tool).Spec.Extensions, again.Spec.Extensions) {
				t.Errorf("%s is read back with %v", yaml, violations)
			}
		})
	}
}

func TestManifestsOfExtensionsAreReadStrictly(t *testing.T) {
	o := registry.Options{Executors: []registry.Executor{queue{}, plain{"clock"}}}
	for _, tt := range []struct {
		name, spec string
		want       []string
	}{
		{"an unknown mode", "  mode: queeu\n", []string{`tool.yaml:7:9: spec.mode: unknown value "queeu": expected one of mock, live, mcp, exec, queue, clock; did you mean "queue"?`}},
		{"another block", "  queues: {topic: orders}\n", []string{`tool.yaml:7:3: spec.queues: unknown field "queues"; did you mean "queue"?`}},
		{"a field of the block", "  queue: {topic: orders, prioriti: low}\n", []string{`tool.yaml:7:26: spec.queue.prioriti: unknown property "prioriti"; did you mean "priority"?`}},
		{"a field of a type that the block refers to", "  queue:\n    topic: orders\n    retry: {tries: 3}\n", []string{`tool.yaml:9:13: spec.queue.retry.tries: unknown property "tries"`}},
		{"a wrong value", "  queue:\n    topic: orders\n    priority: highest\n", []string{`tool.yaml:9:5: spec.queue.priority: expected one of "low", "high", got string "highest"`}},
		{"a missing field", "  queue: {}\n", []string{`tool.yaml:7:3: spec.queue.topic: required property "topic" is missing`}},
		{"a missing block", "  mode: queue\n", []string{`tool.yaml:7:3: spec.mode: mode queue needs spec.queue`}},
		{"a duplicate field", "  queue: {topic: a, topic: b}\n", []string{`tool.yaml:7:21: spec.queue.topic: duplicate key "topic"`}},
		{"a block of an executor that has none", "  clock: {}\n", []string{`tool.yaml:7:3: spec.clock: unknown field "clock"`}},
		{"two blocks", "  queue: {topic: a}\n  http: {url: https://example.com}\n", []string{`tool.yaml:7:3: spec.queue: a second executor block: a tool has spec.http or spec.queue, not both`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := problems(t, queued+tt.spec, o)
			if len(got) == 0 || !strings.HasPrefix(got[0], tt.want[0]) && got[0] != tt.want[0] {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			objects, _ := read(t, queued+tt.spec, o)
			if _, err := newRegistry(t, o, objects...).Execute(t.Context(), v1.Call{Tool: "order"}); err == nil && tt.name != "a block of an executor that has none" {
				t.Error("it can be called")
			}
		})
	}
	t.Run("a program without the executor", func(t *testing.T) {
		got := problems(t, queued+"  mode: queue\n  queue: {topic: orders}\n", registry.Options{Executors: []registry.Executor{plain{"mock"}}})
		want := []string{`tool.yaml:7:9: spec.mode: unknown value "queue": expected one of mock, live, mcp, exec`, `tool.yaml:8:3: spec.queue: unknown field "queue"`}
		if len(got) < 2 || !strings.HasPrefix(got[0], want[0]) || !strings.HasPrefix(got[1], want[1]) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestExtensionsThatCannotBe(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		o          registry.Options
	}{
		{"the name of a field", `the executor "hints"`, registry.Options{Executors: []registry.Executor{named{"hints"}}}},
		{"the name of a mode", `the executor "live"`, registry.Options{Executors: []registry.Executor{named{"live"}}}},
		{"no name", `the rule ""`, registry.Options{Rules: []policy.Rule{{}}}},
		{"a rule of ours", `the rule "blocklist"`, registry.Options{Rules: []policy.Rule{{Name: "blocklist"}}}},
		{"a schema", `the schema of the rule "hours"`, registry.Options{Rules: []policy.Rule{{Name: "hours", Schema: json.RawMessage(`{"type":"objct"}`)}}}},
		{"two rules", `two extensions`, registry.Options{Rules: []policy.Rule{hours, hours}}},
	} {
		if _, err := registry.New(nil, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

type named struct{ name string }

func (n named) Name() string { return n.name }

func (n named) Extension() v1.Extension { return v1.Extension{Schema: json.RawMessage(`{}`)} }

func (named) Execute(context.Context, *v1.Tool, json.RawMessage) (v1.Result, error) {
	return v1.Result{}, nil
}

func TestExplainSchemasAndCompletionKnowExtensions(t *testing.T) {
	o := registry.Options{Executors: []registry.Executor{queue{}}, Rules: []policy.Rule{hours}}
	extensions, err := registry.Extensions(o.Executors, o.Rules)
	if err != nil {
		t.Fatal(err)
	}
	doc := must(schemas.Explain("tool.spec.queue", false, extensions...)).Text()
	for _, want := range []string{"FIELD: queue <object>", "queue puts the arguments into a queue.", "topic\t<string> -required-", "enum: low, high", "default: low", "retry\t<queue.retry>"} {
		if !strings.Contains(doc, want) {
			t.Errorf("%s\nlacks %q", doc, want)
		}
	}
	for path, want := range map[string]string{"tool.spec.mode": "queue", "tool.spec.queue.retry.times": "<integer>", "tool.spec.queue.topic": "topic: orders", "toolpolicy.spec.hours": "hours refuses calls"} {
		if doc, err := schemas.Explain(path, true, extensions...); err != nil || !strings.Contains(doc.Text(), want) {
			t.Errorf("%s: %v\n%s\nlacks %q", path, err, doc.Text(), want)
		}
	}
	if _, err := schemas.Explain("tool.spec.queue", false); err == nil {
		t.Error("a program without the executor explains it")
	}
	if got := schemas.Complete("tool.spec.queue.p", extensions...); !cmp.Equal(got, []string{"tool.spec.queue.priority"}) {
		t.Errorf("got %q", got)
	}
	if got := schemas.Complete("tool.spec.q", extensions...); !cmp.Equal(got, []string{"tool.spec.queue"}) {
		t.Errorf("got %q", got)
	}
	// The published schema accepts the same manifests as the program.
	for kind, docs := range map[string]map[string]bool{
		"Tool": {
			`{"apiVersion":"toolctl.dev/v1","kind":"Tool","metadata":{"name":"a"},"spec":{"description":"d","mode":"queue","input_schema":{"type":"object"},"queue":{"topic":"t","retry":{"times":1}}}}`: true,
			`{"apiVersion":"toolctl.dev/v1","kind":"Tool","metadata":{"name":"a"},"spec":{"description":"d","input_schema":{"type":"object"},"queue":{"topik":"t"}}}`:                                    false,
			`{"apiVersion":"toolctl.dev/v1","kind":"Tool","metadata":{"name":"a"},"spec":{"description":"d","mode":"queues","input_schema":{"type":"object"}}}`:                                          false,
		},
		"ToolPolicy": {
			`{"apiVersion":"toolctl.dev/v1","kind":"ToolPolicy","metadata":{"name":"a"},"spec":{"hours":{"from":8}}}`:   true,
			`{"apiVersion":"toolctl.dev/v1","kind":"ToolPolicy","metadata":{"name":"a"},"spec":{"hours":{"from":"8"}}}`: false,
		},
	} {
		data, ok := schemas.For(kind, extensions...)
		if !ok {
			t.Fatal(kind)
		}
		s := validate.NewCache(validate.Options{}).Schema(data, validate.Draft7)
		for doc, fits := range docs {
			if bad, err := s.ValidateJSON([]byte(doc)); err != nil || (len(bad) == 0) != fits {
				t.Errorf("%s: %v, %v", doc, bad, err)
			}
		}
	}
}

// hours is a program's rule that refuses calls before an hour of the day.
var hours = policy.Rule{
	Name:        "hours",
	Description: "hours refuses calls before an hour of the day.",
	Schema:      json.RawMessage(`{"type":"object","required":["from"],"properties":{"from":{"type":"integer","minimum":0,"maximum":23}}}`),
	Compile: func(value json.RawMessage) (policy.Judge, error) {
		var v struct{ From int }
		if err := json.Unmarshal(value, &v); err != nil {
			return nil, err
		}
		return func(_ context.Context, _ policy.Subject, req policy.Request) (bool, string, error) {
			if req.Now.Hour() < v.From {
				return false, "it is too early", nil
			}
			return true, "it is late enough", nil
		}, nil
	},
}

func TestPolicyRulesOfTheProgram(t *testing.T) {
	o := registry.Options{Executors: []registry.Executor{plain{"mock"}}, Rules: []policy.Rule{hours}}
	const doc = queued + `  mock_result: 1
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: office}
spec:
  hours: {from: FROM}
`
	for _, tt := range []struct{ from, want string }{
		{"0", ""},
		{"24", `tool.yaml:13:11: spec.hours.from: expected`},
		{"x", `tool.yaml:13:11: spec.hours.from: expected integer`},
	} {
		got := problems(t, strings.ReplaceAll(doc, "FROM", tt.from), o)
		if (tt.want == "") != (len(got) == 0) || tt.want != "" && !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%s: got %q, want %s", tt.from, got, tt.want)
		}
		objects, _ := read(t, strings.ReplaceAll(doc, "FROM", tt.from), o)
		// A policy with a broken rule might have refused the call.
		if _, err := newRegistry(t, o, objects...).Execute(t.Context(), v1.Call{Tool: "order"}); (err == nil) != (tt.want == "") {
			t.Errorf("%s: the call got %v", tt.from, err)
		}
	}
	// A program that does not know the rule refuses calls too.
	objects, _ := read(t, strings.ReplaceAll(doc, "FROM", "0"), o)
	_, err := newRegistry(t, registry.Options{Executors: o.Executors}, objects...).Execute(t.Context(), v1.Call{Tool: "order"})
	var invalid *v1.ValidationError
	if !errors.As(err, &invalid) {
		t.Errorf("got %v", err)
	}
}

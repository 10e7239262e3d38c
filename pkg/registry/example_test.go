package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
)

// Shout is an executor: its tools have "mode: shout" and may have a block spec.shout.
type Shout struct{}

func (Shout) Name() string { return "shout" }

func (Shout) Extension() v1.Extension {
	return v1.Extension{
		Description: "shout answers with the text, and what it is to end with.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"suffix":{"type":"string","default":"!"}}}`),
	}
}

func (Shout) Execute(_ context.Context, tool *v1.Tool, args json.RawMessage) (v1.Result, error) {
	block := struct{ Suffix string }{"!"}
	if raw, ok := tool.Spec.Extensions["shout"]; ok {
		if err := json.Unmarshal(raw, &block); err != nil {
			return v1.Result{}, err
		}
	}
	var in struct{ Text string }
	if err := json.Unmarshal(args, &in); err != nil {
		return v1.Result{}, err
	}
	content, err := json.Marshal(in.Text + block.Suffix)
	return v1.Result{Content: content, Attempts: 1}, err
}

const shouting = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: greet}
spec:
  description: Greets
  input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
  mode: shout
  shout: {suffix: "!!"}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: polite}
spec:
  no_word: damn
`

// This example adds an executor, a policy rule and a middleware written in Go.
func Example() {
	noWord := policy.Rule{
		Name: "no_word", Description: "no_word refuses arguments that are the word.",
		Schema: json.RawMessage(`{"type":"string"}`),
		Compile: func(value json.RawMessage) (policy.Judge, error) {
			var word string
			err := json.Unmarshal(value, &word)
			return func(_ context.Context, _ policy.Subject, req policy.Request) (bool, string, error) {
				var in struct{ Text string }
				err := json.Unmarshal(req.Args, &in)
				return in.Text != word, fmt.Sprintf("the text is not to be %q", word), err
			}, err
		},
	}
	timed := func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, call v1.Call) (v1.Result, error) {
			began := time.Now()
			res, err := next(ctx, call)
			_ = time.Since(began) // for your metrics
			return res, err
		}
	}
	opts := registry.Options{
		Executors:  []registry.Executor{Shout{}},
		Rules:      []policy.Rule{noWord},
		Middleware: []registry.Middleware{timed},
	}
	extensions, err := registry.Extensions(opts.Executors, opts.Rules)
	if err != nil {
		panic(err)
	}
	objects, violations := manifest.Decode("greet.yaml", []byte(shouting), manifest.Options{Extensions: extensions})
	fmt.Println(len(violations), "violations")
	reg, err := registry.New(objects, opts)
	if err != nil {
		panic(err)
	}
	defer reg.Close()
	for _, args := range []string{`{"text":"hello"}`, `{"text":"damn"}`} {
		res, err := reg.Execute(context.Background(), v1.Call{Tool: "greet", Args: json.RawMessage(args)})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(string(res.Content))
	}
	// Output:
	// 0 violations
	// "hello!!"
	// tool "greet": refused by policy "polite", rule no_word: the text is not to be "damn" (greet.yaml:15:3)
}

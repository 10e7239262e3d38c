package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/scripted"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read reads the manifests in a test.
func read(t testing.TB, text string) []v1.Object {
	t.Helper()
	set, err := manifest.Load(context.Background(), []string{"-"}, manifest.Options{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range set.Violations {
		if !f.IsWarning() {
			t.Fatal(f)
		}
	}
	return set.Objects
}

// world is a registry with its prompts.
type world struct {
	t   testing.TB
	reg *registry.Registry
}

func newWorld(t testing.TB, text string, o registry.Options) *world {
	t.Helper()
	if o.Executors == nil {
		o.Executors = executors.All(executors.Options{})
	}
	reg, err := registry.New(read(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, reg}
}

func (w *world) prompt(name string) *prompt.Prompt {
	w.t.Helper()
	it, err := w.reg.Get(v1.KindPrompt, "", name)
	if err != nil {
		w.t.Fatal(err)
	}
	if !it.Ready {
		w.t.Fatal(it.Reason())
	}
	p, err := prompt.Compile(it.Object.(*v1.Prompt))
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// run runs a prompt against a script in YAML.
func (w *world) run(name, vars, script string, o agent.Options) (agent.Result, error) {
	w.t.Helper()
	if o.Model == nil {
		o.Model = model(w.t, script)
	}
	return agent.Run(context.Background(), w.reg, w.prompt(name), json.RawMessage(vars), o)
}

func model(t testing.TB, script string) *scripted.Model {
	t.Helper()
	return scripted.New(replies(t, script), scripted.Options{})
}

func replies(t testing.TB, script string) []v1.ModelReply {
	t.Helper()
	raw, violations := manifest.ToJSON("script", []byte(script))
	if len(violations) == 0 {
		var all []v1.ModelReply
		if all, violations = scripted.Parse(raw); len(violations) == 0 {
			return all
		}
	}
	t.Fatal(violations)
	return nil
}

// story formats a run in a few lines.
func story(res agent.Result) string {
	var b strings.Builder
	for _, m := range res.Messages {
		fmt.Fprintf(&b, "%s: %s", m.Role, m.Text)
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, " [%s %s %s]", c.ID, c.Name, c.Args)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const tools = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-weather}
spec:
  description: Current weather
  input_schema: {type: object, properties: {city: {type: string}}, required: [city]}
  mock_template: '{"city": "{{.city}}", "celsius": 4}'
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: book}
spec:
  description: Books a trip
  input_schema: {type: object, properties: {city: {type: string}}, required: [city], additionalProperties: false}
  mock_result: {booked: true}
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: advice}
spec:
  description: What to pack
  system_prompt: Be brief.
  template: What should I pack for {{.city}}?
  input: {type: object, properties: {city: {type: string}}, required: [city]}
  tools: [get-weather, book]
  model: some-model
`

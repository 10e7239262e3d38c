package action_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
)

const called = `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: greet}
spec:
  description: Greet
  input_schema:
    type: object
    properties: {who: {type: string, enum: [ann, bob]}, at: {type: object, properties: {hour: {type: integer}}}}
  mock_template: '{"hello":"{{.who}}"}'
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pay, input_schema: {type: object}, mock_result: {paid: true}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {blocklist: [pay]}
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: hello}
spec:
  description: Say hello
  input: {type: object, properties: {who: {type: string}}, required: [who]}
  template: Hello {{.who}}
`

func callable(t *testing.T) (c *action.Config, warnings *[]string) {
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(called), 0o600); err != nil {
		t.Fatal(err)
	}
	warnings = new([]string)
	return &action.Config{Files: []string{file}, Stdin: strings.NewReader(`{"who":"bob"}`), Warned: func(text string) { *warnings = append(*warnings, text) }}, warnings
}

// TestCall checks that a call reads its arguments, can be planned, refused and explained, and reports a mistyped
// argument.
func TestCall(t *testing.T) {
	c, warnings := callable(t)
	call := func(tool string, flags ...string) *action.Call {
		return &action.Call{Config: c, Call: v1.Call{Tool: tool}, Arguments: action.Arguments{Flags: flags}}
	}
	r, err := call("tool/greet", "who=ann", "at.hour=7").Run(t.Context())
	if err != nil || r.Status != v1.StatusComplete || string(r.Content) != `{"hello":"ann"}` || r.Stored {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err = call("greet", "-").Run(t.Context()); err != nil || string(r.Content) != `{"hello":"bob"}` {
		t.Errorf("arguments of stdin: got %+v, %v", r, err)
	}
	plan, err := call("greet", "whoo=x").Plan(t.Context())
	if err != nil || plan.Tool != "greet" || len(*warnings) != 1 || !strings.Contains((*warnings)[0], `"whoo"`) {
		t.Errorf("got %+v, %v, warned %q", plan, err, *warnings)
	}
	if _, err := call("pay").Run(t.Context()); !errors.As(err, new(*v1.PolicyError)) {
		t.Errorf("got %v, want a refusal", err)
	}
	if ex, err := call("pay").Explain(t.Context()); err != nil || ex.Decision != "deny" || ex.Rule != "blocklist" {
		t.Errorf("got %+v, %v", ex, err)
	}
	if _, err := call("hello").Run(t.Context()); !errors.As(err, new(*v1.NotFoundError)) || !strings.Contains(err.Error(), "'toolctl render hello'") {
		t.Errorf("got %v, want that it is a prompt", err)
	}
	c.Files = append(c.Files, "-")
	if _, err := call("greet", "-").Run(t.Context()); !errors.As(err, new(*action.UsageError)) {
		t.Errorf("stdin for two things: got %v", err)
	}
}

// TestRender checks that a prompt is rendered with its variables, and that an unknown variable is reported.
func TestRender(t *testing.T) {
	c, _ := callable(t)
	r, err := (&action.Render{Config: c, Prompt: "hello", Arguments: action.Arguments{Flags: []string{"who=ann"}}}).Run(t.Context())
	if err != nil || r.Server != nil || r.Prompt.Description != "Say hello" || r.Prompt.Messages.User() != "Hello ann" {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := (&action.Render{Config: c, Prompt: "hello"}).Run(t.Context()); !errors.As(err, new(*v1.ValidationError)) {
		t.Errorf("without its variable: got %v", err)
	}
	if _, err := (&action.Render{Config: c, Prompt: "greet"}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "'toolctl call greet'") {
		t.Errorf("got %v, want that it is a tool", err)
	}
}

// TestArgumentWords checks the completion of argument names with "=", and of enum values after it.
func TestArgumentWords(t *testing.T) {
	c, _ := callable(t)
	for _, tt := range []struct {
		kind, name, word string
		want             []string
	}{
		{v1.KindTool, "greet", "", []string{"at=", "who="}},
		{v1.KindTool, "greet", "who=", []string{"who=ann", "who=bob"}},
		{v1.KindTool, "greet", "at=", nil},
		{v1.KindPrompt, "hello", "w", []string{"who="}},
	} {
		if got, err := c.ArgumentWords(t.Context(), tt.kind, tt.name, tt.word); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s %q: got %q, %v, want %q", tt.name, tt.word, got, err, tt.want)
		}
	}
}

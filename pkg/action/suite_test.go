package action_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/agent"
)

const played = `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pay, input_schema: {type: object}, output_schema: {type: object}, mock_result: {}, examples: [{args: {}, expect: {status: pending}}]}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {require_approval: [pay]}
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: ask}
spec: {description: Ask, tools: [pay], template: Pay}
---
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: right}
spec: {turns: [{calls: [{tool: pay, expect: {status: pending}}]}]}
---
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: wrong}
spec: {turns: [{calls: [{tool: pay, expect: {status: complete}}]}]}
`

// playable returns a folder with manifests and the replies of a model, and a Config for the manifests.
func playable(t *testing.T) (dir string, c *action.Config) {
	dir = t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"all.yaml": played, "model.yaml": "- tool_calls: [{tool: pay, args: {}}]\n- text: paid\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, &action.Config{Files: []string{filepath.Join(dir, "all.yaml")}}
}

func suite(c *action.Config) *action.Suite {
	return &action.Suite{Config: c, Paths: c.Files, Timeout: time.Minute, Judge: action.Judge{MaxCalls: 1}}
}

// TestSuite checks that scenarios are selected by name and by shard, and that the verdict names those that did not
// pass.
func TestSuite(t *testing.T) {
	_, c := playable(t)
	for _, test := range []struct {
		only, shard   string
		passed, whole int
		verdict       string
	}{
		{"", "", 1, 2, "1 scenario failed"},
		{"^right$", "", 1, 1, ""},
		{"", "1/2", 1, 1, ""},
		{"", "2/2", 0, 1, "1 scenario failed"},
	} {
		s := suite(c)
		s.Only, s.Shard = test.only, test.shard
		r, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		verdict := ""
		if err := r.Verdict(); err != nil {
			verdict = err.Error()
		}
		if r.Passed != test.passed || len(r.Scenarios) != test.whole || verdict != test.verdict {
			t.Errorf("--run %q --shard %q: %d of %d passed, %q", test.only, test.shard, r.Passed, len(r.Scenarios), verdict)
		}
	}
	for _, change := range []func(*action.Suite){
		func(s *action.Suite) { s.Only = "(" },
		func(s *action.Suite) { s.Only = "^none$" },
		func(s *action.Suite) { s.Shard = "3/2" },
		func(s *action.Suite) { s.Selector = "a=b=c" },
		func(s *action.Suite) { s.MinCoverage = 101 },
		func(s *action.Suite) { s.Update, s.Live = true, true },
		func(s *action.Suite) { s.Judge.Model = "openai" },
		func(s *action.Suite) { s.Judge.Model, s.Judge.Script = "openai:m", "replies.yaml" },
	} {
		s := suite(c)
		change(s)
		if _, err := s.Run(t.Context()); !errors.As(err, new(*action.UsageError)) {
			t.Errorf("%+v: got %v, want wrong usage", s, err)
		}
	}
}

// TestVerifyAndMock checks that the examples of tools are called, and that a tool without examples is wrong usage.
func TestVerifyAndMock(t *testing.T) {
	_, c := playable(t)
	r, err := (&action.Verify{Config: c}).Run(t.Context())
	if err != nil || len(r.Scenarios) != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	mocks, err := (&action.Mock{Config: c}).Run(t.Context())
	if err != nil || string(mocks["pay"].Result) != "{}" {
		t.Errorf("got %v, %v", mocks, err)
	}
	if _, err := (&action.Mock{Config: c, Tools: action.Tools{Selector: "team=none"}}).Run(t.Context()); !errors.As(err, new(*action.UsageError)) {
		t.Errorf("got %v, want wrong usage", err)
	}
	if _, err := (&action.Verify{Config: c, Tools: action.Tools{Names: []string{"pya"}}}).Run(t.Context()); !errors.As(err, new(*v1.NotFoundError)) {
		t.Errorf("got %v, want that there is no such tool", err)
	}
}

// TestRunThatWaits checks that a pending run is saved in the store, is listed, and can be deleted.
func TestRunThatWaits(t *testing.T) {
	dir, c := playable(t)
	c.DSN = filepath.Join(dir, "state.db")
	run := func(change func(*action.Run)) (*action.Ran, error) {
		r := &action.Run{Config: c, Prompt: "ask", Model: action.ModelChoice{Script: "model.yaml"}, Agent: agent.Options{MaxHops: 5, Parallel: 1}}
		change(r)
		return r.Run(t.Context())
	}
	planned, err := run(func(r *action.Run) { r.DryRun, r.Model = true, action.ModelChoice{} })
	if err != nil || planned.Request == nil || len(planned.Request.Tools) != 1 {
		t.Fatalf("got %+v, %v", planned, err)
	}
	waiting, err := run(func(*action.Run) {})
	if err != nil || waiting.Status != agent.Pending || !waiting.Stored {
		t.Fatalf("got %+v, %v", waiting, err)
	}
	store := &action.Config{DSN: c.DSN}
	if all, err := (&action.ListRuns{Config: store}).Run(t.Context()); err != nil || len(all) != 1 || all[0].ID != waiting.ID {
		t.Errorf("got %v, %v", all, err)
	}
	deleted, err := (&action.DeleteRuns{Config: store, IDs: []string{waiting.ID, "NONE"}}).Run(t.Context())
	if len(deleted) != 1 || !errors.As(err, new(*v1.NotFoundError)) {
		t.Errorf("got %v, %v", deleted, err)
	}
	if _, err := (&action.ListRuns{Config: c}).Run(t.Context()); !errors.As(err, new(*action.UsageError)) {
		t.Errorf("runs of files: got %v, want wrong usage", err)
	}
	for _, change := range []func(*action.Run){
		func(r *action.Run) { r.Model = action.ModelChoice{} },
		func(r *action.Run) { r.Model = action.ModelChoice{Provider: "opneai"} },
		func(r *action.Run) { r.Model.Provider = "openai" },
		func(r *action.Run) { r.Agent.MaxHops = 0 },
		func(r *action.Run) { r.DryRun, r.Prompt, r.Resume = true, "", waiting.ID },
	} {
		if _, err := run(change); !errors.As(err, new(*action.UsageError)) {
			t.Errorf("got %v, want wrong usage", err)
		}
	}
}

package action_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/store"
)

const tool = `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: %s%s}
spec:
  description: Says hello
  input_schema: {type: object}
  mock_result: {said: %q}
`

// folder writes a folder of tools; the map has the mock result of each tool by its name.
func folder(t *testing.T, tools map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, said := range tools {
		write(t, dir, name, "", said)
	}
	return dir
}

func write(t *testing.T, dir, name, more, said string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name+".yaml"), fmt.Appendf(nil, tool, name, more, said), 0o600); err != nil {
		t.Fatal(err)
	}
}

func config(t *testing.T, files ...string) *action.Config {
	return &action.Config{Files: files, DSN: filepath.Join(t.TempDir(), "state.db"), By: "ann"}
}

func lines(changes []action.Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Key.Name+" "+string(c.Action))
	}
	slices.Sort(out)
	return out
}

func apply(t *testing.T, a action.Apply) *action.Applied {
	t.Helper()
	done, err := a.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestApplyAndPrune(t *testing.T) {
	dir := folder(t, map[string]string{"hello": "hello", "bye": "bye", "stays": "yes"})
	write(t, dir, "stays", ", annotations: {toolctl.dev/prune: disabled}", "yes")
	c := config(t, dir)
	set := action.Selection{Set: "team", Prune: true}

	dry := apply(t, action.Apply{Config: c, Selection: set, DryRun: action.DryRunServer})
	same(t, lines(dry.Changes), "bye created", "hello created", "stays created")
	if _, err := os.Stat(c.DSN); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dry run made the store: %v", err)
	}
	same(t, lines(apply(t, action.Apply{Config: c, Selection: set}).Changes), "bye created", "hello created", "stays created")

	for _, name := range []string{"bye", "stays"} {
		if err := os.Remove(filepath.Join(dir, name+".yaml")); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "hello", "", "good day")
	done := apply(t, action.Apply{Config: c, Selection: set})
	same(t, lines(done.Changes), "bye pruned", "hello configured")
	if len(done.Kept) != 1 || done.Kept[0].Name != "stays" {
		t.Errorf("kept %v, want the object with the annotation", done.Kept)
	}
}

func TestApplyRefuses(t *testing.T) {
	dir := folder(t, map[string]string{"hello": "hello"})
	for name, a := range map[string]action.Apply{
		"prune with a selector":    {Config: config(t, dir), Selection: action.Selection{Prune: true, Selector: "a=b"}},
		"no files":                 {Config: config(t)},
		"a plan with a selection":  {Config: config(t, dir), Plan: &plan.Plan{}, Selection: action.Selection{Prune: true}},
		"a plan without the store": {Config: config(t, dir), Plan: &plan.Plan{}, DryRun: action.DryRunClient},
		"no object chosen":         {Config: config(t, dir), Selection: action.Selection{Selector: "a=b"}},
		"a negative history":       {Config: config(t, dir), History: -1},
	} {
		if _, err := a.Run(t.Context()); !errors.As(err, new(*action.UsageError)) {
			t.Errorf("%s: got %v, want a UsageError", name, err)
		}
		if _, err := os.Stat(a.DSN); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the store was made", name)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.yaml"), []byte("apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: bad}\nspec: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := (&action.Apply{Config: config(t, dir)}).Run(t.Context())
	var invalid *v1.ValidationError
	if !errors.As(err, &invalid) || !strings.HasSuffix(invalid.Violations[0].Source.File, "bad.yaml") {
		t.Errorf("got %v, want a ValidationError that names bad.yaml", err)
	}
}

func TestDiffAndPlan(t *testing.T) {
	dir := folder(t, map[string]string{"hello": "hello", "bye": "bye"})
	c := config(t, dir)
	apply(t, action.Apply{Config: c, Selection: action.Selection{Set: "team"}})
	write(t, dir, "hello", "", "good day")
	if err := os.Remove(filepath.Join(dir, "bye.yaml")); err != nil {
		t.Fatal(err)
	}

	found, err := (&action.Diff{Config: c, Selection: action.Selection{Set: "team"}}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Report.Changes) != 1 || found.Report.Changes[0].Source.Line == 0 {
		t.Errorf("got %+v, want one change with its place", found.Report.Changes)
	}
	if found.Left != 1 {
		t.Errorf("got %d objects that prune would delete, want 1", found.Left)
	}
	same(t, lines(apply(t, action.Apply{Config: c, Plan: found.Plan}).Changes), "hello configured")

	write(t, dir, "hello", "", "good night")
	_, err = (&action.Apply{Config: c, Plan: found.Plan}).Run(t.Context())
	if !errors.As(err, new(*plan.StaleError)) {
		t.Errorf("got %v, want a StaleError", err)
	}

	other := folder(t, map[string]string{"hello": "good night", "new": "new"})
	found, err = (&action.Diff{Config: c, Against: other}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Report.Changes) != 1 || found.Plan != nil {
		t.Errorf("got %+v and plan %v, want the deleted tool and no plan", found.Report.Changes, found.Plan)
	}
}

func TestDelete(t *testing.T) {
	c := config(t, folder(t, map[string]string{"hello": "hello", "bye": "bye"}))
	apply(t, action.Apply{Config: c})
	tools := func(names ...string) []action.Request { return []action.Request{{Kind: v1.KindTool, Names: names}} }

	_, err := (&action.Delete{Config: c, Requests: tools("hello", "nosuch")}).Run(t.Context())
	if !errors.As(err, new(*v1.NotFoundError)) {
		t.Errorf("got %v, want a NotFoundError", err)
	}
	changes, err := (&action.Delete{Config: c, Requests: tools("hello", "hello", "nosuch"), IgnoreMissing: true}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, lines(changes), "hello deleted")
	changes, err = (&action.Delete{Config: c, IgnoreMissing: true, DryRun: true}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, lines(changes), "bye deleted")
	s, err := c.OpenStore(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	left, err := action.Objects(t.Context(), s, store.ListOptions{})
	if err != nil || len(left) != 1 {
		t.Errorf("got %v, %v, want what the dry run left", left, err)
	}
}

// TestDryRunOfAStoreThatCannotOpen checks that a store with wrong options is an error, rather than an empty store.
func TestDryRunOfAStoreThatCannotOpen(t *testing.T) {
	c := config(t, folder(t, map[string]string{"hello": "hi"}))
	c.MaxStoreBytes = -1
	if _, err := (&action.Apply{Config: c, DryRun: action.DryRunServer}).Run(t.Context()); !wrong(err) {
		t.Errorf("got %v, want wrong usage", err)
	}
}

func ExampleApply() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	manifest := filepath.Join(dir, "hello.yaml")
	if err := os.WriteFile(manifest, fmt.Appendf(nil, tool, "hello", "", "hello"), 0o600); err != nil {
		panic(err)
	}
	c := &action.Config{Files: []string{manifest}, DSN: filepath.Join(dir, "state.db"), By: "ann"}
	done, err := (&action.Apply{Config: c}).Run(context.Background())
	if err != nil {
		panic(err)
	}
	for _, change := range done.Changes {
		fmt.Println(change.Key.Name, change.Action)
	}
	// Output: hello created
}

package authoring_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/authoring"
	"toolctl.dev/toolctl/pkg/registry"
)

// tools returns a function that calls the authoring tools for a folder.
func tools(t *testing.T, dir string) func(tool string, args any, into any) error {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	reg, err := registry.New(authoring.Tools(authoring.Options{Root: root}), registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reg.Close() })
	return func(tool string, args, into any) error {
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		res, err := reg.Execute(context.WithoutCancel(t.Context()), v1.Call{Tool: tool, Args: raw})
		if err == nil && into != nil {
			err = json.Unmarshal(res.Content, into)
		}
		return err
	}
}

type args map[string]any

// violations are the violations that validate found, one on each line.
type violations struct {
	Valid      bool
	Files      int
	Violations []v1.Violation
}

func (v violations) String() string {
	var lines []string
	for _, f := range v.Violations {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestExamplesAreValidAndPass checks that each example, together with the examples that it uses, is valid and passes
// its own scenarios in an empty folder.
func TestExamplesAreValidAndPass(t *testing.T) {
	var list struct {
		Others []struct{ Name, About string }
	}
	if err := tools(t, t.TempDir())("examples", args{}, &list); err != nil || len(list.Others) < 15 {
		t.Fatal(list, err)
	}
	for _, of := range list.Others {
		t.Run(of.Name, func(t *testing.T) {
			dir := t.TempDir()
			call := tools(t, dir)
			var got struct {
				Examples []struct {
					Name, Text string
					Kinds      []string
				}
			}
			if err := call("examples", args{"topic": of.Name}, &got); err != nil || got.Examples[0].Name != of.Name || of.About == "" {
				t.Fatal(got, err)
			}
			scenarios := false
			for _, e := range got.Examples {
				write(t, filepath.Join(dir, e.Name), e.Text)
				scenarios = scenarios || strings.Contains(e.Text, "kind: Scenario")
			}
			var found violations
			if err := call("validate", args{"strict": true}, &found); err != nil || !found.Valid || found.Files != len(got.Examples) {
				t.Errorf("%v %s", err, found)
			}
			if scenarios {
				var report struct{ Passed, Failed, Invalid int }
				if err := call("test", args{}, &report); err != nil || report.Failed+report.Invalid > 0 || report.Passed == 0 {
					t.Error(report, err)
				}
			}
		})
	}
}

func TestEveryKindHasAnExample(t *testing.T) {
	call := tools(t, t.TempDir())
	for _, kind := range v1.KindInfos() {
		var got struct{ Examples []struct{ Text string } }
		if err := call("examples", args{"topic": kind.Singular()}, &got); err != nil || len(got.Examples) == 0 || !strings.Contains(got.Examples[0].Text, "kind: "+kind.Kind) && kind.Kind != v1.KindPrompt {
			t.Error(kind.Kind, got, err)
		}
	}
}

// TestTextAmongFiles checks a text together with the manifests on disk, in place of its file.
func TestTextAmongFiles(t *testing.T) {
	call := tools(t, "testdata")
	scenario := "apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: polite}\nspec:\n  turns:\n  - calls:\n    - {tool: greet, args: {name: Ann}, expect: {result: {text: Hello Ann}}}\n"
	var found violations
	if err := call("validate", args{"manifest": scenario, "strict": true}, &found); err != nil || !found.Valid {
		t.Error(err, found)
	}
	var report struct{ Passed, Failed int }
	if err := call("test", args{"manifest": scenario}, &report); err != nil || report.Passed != 1 {
		t.Error(err, report)
	}
	greet, err := os.ReadFile("testdata/tools/greet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := call("validate", args{"manifest": string(greet)}, &found); err != nil || !strings.Contains(found.String(), "declared twice: here and at "+filepath.Join("tools", "greet.yaml")) {
		t.Error(err, found)
	}
	if err := call("validate", args{"manifest": string(greet), "path": "tools/greet.yaml"}, &found); err != nil || !found.Valid {
		t.Error(err, found)
	}
	changed := strings.NewReplacer("name: {type", "person: {type", ".name}", ".person}", "[name]", "[person]").Replace(string(greet))
	var diff struct {
		Changes []struct{ Name, Action, Class string }
	}
	if err := call("diff", args{"manifest": changed, "path": "tools/greet.yaml"}, &diff); err != nil ||
		len(diff.Changes) != 1 || diff.Changes[0].Class != "breaking" || diff.Changes[0].Action != "change" {
		t.Error(err, diff)
	}
	if err := call("diff", args{"manifest": string(greet), "before": strings.ReplaceAll(string(greet), "by name", "")}, &diff); err != nil || len(diff.Changes) != 1 || diff.Changes[0].Class != "neutral" {
		t.Error(err, diff)
	}
	if err := call("diff", args{"manifest": string(greet)}, &diff); err == nil || !strings.Contains(err.Error(), "name the file with path") {
		t.Error(err)
	}
	if err := call("diff", args{"manifest": string(greet), "path": "tools/greet.yaml", "before": string(greet)}, &diff); err != nil || len(diff.Changes) != 0 {
		t.Error(err, diff)
	}
}

func TestPathsStayInTheFolder(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "work")
	const valid = "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: x}\nspec: {description: X, input_schema: {type: object}, mock_result: 1}\n"
	write(t, filepath.Join(top, "outside.yaml"), valid)
	write(t, filepath.Join(top, "secret.txt"), "hunter2")
	write(t, filepath.Join(dir, "tools", "x.yaml"), valid)
	write(t, filepath.Join(dir, ".hidden", "x.yaml"), valid)
	write(t, filepath.Join(dir, ".env"), "hunter2")
	for name, to := range map[string]string{"link.yaml": "../outside.yaml", "out": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	call := tools(t, dir)
	for path, want := range map[string]string{
		"../outside.yaml":                  "outside of the folder",
		"tools/../../outside.yaml":         "outside of the folder",
		filepath.Join(top, "outside.yaml"): "outside of the folder",
		".hidden/x.yaml":                   "hidden",
		".env":                             "hidden",
		"link.yaml":                        "leaves the folder",
		"out/outside.yaml":                 "leaves the folder",
		"nothing.yaml":                     "does not exist: pass the text as manifest",
		"tools/x.yaml/y.yaml":              "path",
		"tools/\x00.yaml":                  "path",
	} {
		for _, in := range []args{{"path": path}, {"path": path, "manifest": valid}} {
			for _, tool := range []string{"validate", "lint", "test"} {
				if in["manifest"] != nil && path == "nothing.yaml" {
					continue // the text may be for a new file
				}
				if err := call(tool, in, nil); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s %q: %v", tool, path, err)
				}
			}
		}
	}
	var found violations
	if err := call("validate", args{"path": "tools"}, &found); err != nil || !found.Valid {
		t.Error(err, found)
	}
	for _, file := range []string{"../secret.txt", "out/secret.txt", ".env", filepath.Join(top, "secret.txt")} {
		text := strings.Replace(valid, "mock_result: 1", "mock_template_file: "+file, 1)
		err := call("validate", args{"manifest": text}, &found)
		if err != nil || found.Valid || !strings.Contains(found.String(), "spec.mock_template_file") || strings.Contains(found.String(), "hunter2") {
			t.Errorf("%s: %v %s", file, err, found)
		}
	}
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	call := tools(t, dir)
	if err := call("validate", args{"manifest": strings.Repeat("#", 1<<20+1)}, nil); err == nil || !strings.Contains(err.Error(), "manifest has 1048577 bytes, and at most 1048576 are read") {
		t.Error(err)
	}
	text := strings.Repeat("\n", 1<<20) // not YAML, which takes long to scan under the race detector
	for i := range 70 {
		write(t, filepath.Join(dir, "large", string(rune('A'+i))+".md"), text)
	}
	var found violations
	if err := call("validate", args{}, &found); err != nil || !strings.Contains(found.String(), "the 64 MiB that toolctl reads") {
		t.Error(err, found)
	}
}

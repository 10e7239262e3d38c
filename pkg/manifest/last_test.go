package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// A file that is as it was is not parsed again: its objects are the same ones. What it reads may
// have changed all the same when it names other files.
func TestLoadTakesOverWhatIsTheSame(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mock := func(name, more string) string {
		return fmt.Sprintf("apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: %s}\nspec: {description: d, input_schema: {type: object}, %s}\n", name, more)
	}
	for i := range 20 {
		write(fmt.Sprintf("%02d.yaml", i), mock(fmt.Sprint("tool-", i), "mock_result: 1"))
	}
	write("file.yaml", mock("file", "mock_result_file: result.json"))
	write("result.json", "1")
	write("broken.yaml", mock("broken", "mock_result: 1, typo: 2"))
	last := new(manifest.Set)
	for _, step := range []struct {
		name   string
		change func()
		fresh  int // besides file.yaml, which is read each time
		broken int
	}{
		{"at first", func() {}, 21, 1},
		{"nothing", func() {}, 0, 1},
		{"one file", func() { write("03.yaml", mock("tool-3", "mock_result: 2")) }, 1, 1},
		{"a touched file", func() { write("03.yaml", mock("tool-3", "mock_result: 2")) }, 0, 1},
		{"a file that a manifest names", func() { write("result.json", "2") }, 0, 1},
		{"two of one name", func() { write("again.yaml", mock("tool-4", "mock_result: 1")) }, 2, 3},
		{"one of one name again", func() {
			if err := os.Remove(filepath.Join(dir, "again.yaml")); err != nil {
				t.Fatal(err)
			}
		}, 1, 1},
	} {
		step.change()
		now, err := manifest.Load(t.Context(), []string{dir}, manifest.Options{Last: last})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := manifest.Load(t.Context(), []string{dir}, manifest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		fresh, broken := 0, 0
		for i, o := range now.Objects {
			if o.Head().Metadata.Name != "file" && !slices.Contains(last.Objects, o) {
				fresh++
			}
			if o.Head().Broken() {
				broken++
			}
			if got, want := fmt.Sprintf("%+v", o), fmt.Sprintf("%+v", plain.Objects[i]); got != want {
				t.Errorf("%s: got %s, want %s", step.name, got, want)
			}
		}
		if fresh != step.fresh || broken != step.broken || len(now.Objects) != len(plain.Objects) || now.Files != plain.Files || fmt.Sprint(now.Violations) != fmt.Sprint(plain.Violations) {
			t.Errorf("%s: %d objects are new, want %d; %d are broken, want %d; %d files, want %d; violations %v, want %v", step.name, fresh, step.fresh, broken, step.broken, now.Files, plain.Files, now.Violations, plain.Violations)
		}
		for _, o := range now.Objects {
			if tool := o.(*v1.Tool); tool.Metadata.Name == "file" && step.name == "a file that a manifest names" && string(tool.Files["result.json"]) != "2" {
				t.Errorf("%s: %q", step.name, tool.Files)
			}
		}
		last = now
	}
}

package manifest_test

import (
	"strings"
	"testing"
	"testing/fstest"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

func TestLoadFS(t *testing.T) {
	const tool = "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: a}\nspec: {description: d, input_schema: {type: object}, mock_result_file: %s}\n"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	set, err := manifest.LoadFS(t.Context(), fstest.MapFS{
		"tools/a.yaml":    file(strings.Replace(tool, "%s", "../answer.json", 1)),
		"answer.json":     file(`{"n": 1}`),
		".toolctlignore":  file("left-out/\n"),
		"left-out/b.yaml": file("{"),
		"README.md":       file("# for people\n"),
	}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Objects) != 1 || len(set.Violations) > 0 || set.Objects[0].Head().Source.File != "tools/a.yaml" {
		t.Fatalf("%d objects, violations %v", len(set.Objects), set.Violations)
	}
	if got := string(set.Objects[0].(*v1.Tool).Files["../answer.json"]); !strings.Contains(got, `"n"`) {
		t.Errorf("the file that the manifest names is %q", got)
	}
	set, err = manifest.LoadFS(t.Context(), fstest.MapFS{"a.yaml": file(strings.Replace(tool, "%s", "../../etc/passwd", 1))}, manifest.Options{})
	if err != nil || !set.Failed() {
		t.Errorf("a path that leaves the folder: %v, %v", set.Violations, err)
	}
	if _, err := manifest.LoadFS(t.Context(), fstest.MapFS{"x.txt": file("")}, manifest.Options{}); err == nil || !strings.Contains(err.Error(), "no manifest") {
		t.Errorf("nothing to read: %v", err)
	}
}

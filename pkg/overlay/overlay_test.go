package overlay_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/overlay"
)

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A root bounds which folders are read, also through symlinks.
func TestRoot(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"in/top/kustomization.yaml":  "resources: [../../out]\n",
		"in/ok/kustomization.yaml":   "resources: [../base]\n",
		"in/base/kustomization.yaml": "resources: [t.yaml]\n",
		"in/base/t.yaml":             "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: a}\nspec: {description: A, input_schema: {type: object}}\n",
		"in/link/kustomization.yaml": "resources: [out, t.yaml]\n",
		"out/kustomization.yaml":     "resources: []\n",
		"out/t.yaml":                 "secret",
	})
	for _, link := range []string{"out", "t.yaml"} {
		if err := os.Symlink(filepath.Join(dir, "out", map[string]string{"out": "", "t.yaml": "t.yaml"}[link]), filepath.Join(dir, "in/link", link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, wrong := range map[string]int{"top": 1, "ok": 0, "link": 2} {
		b, err := overlay.Build(t.Context(), filepath.Join(dir, "in", name), filepath.Join(dir, "in"))
		if err != nil || len(b.Violations) != wrong {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
}

// An anchor is no tie between what patches change.
func TestAnchors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"kustomization.yaml": "resources: [t.yaml]\npatches:\n- target: {kind: Tool}\n  patch: '[{op: replace, path: /spec/input_schema/properties/a/type, value: integer}]'\n",
		"t.yaml":             "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: a}\nspec: {description: A, input_schema: {type: object, properties: {a: &x {type: string}, b: *x}}, mock_result: {}}\n",
	})
	b, err := overlay.Build(t.Context(), dir, "")
	if err != nil || len(b.Violations) > 0 {
		t.Fatal(b, err)
	}
	text, err := overlay.Write(b.Trees)
	want := "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: a}\nspec: {description: A, input_schema: {type: object, properties: {a: {type: integer}, b: {type: string}}}, mock_result: {}}\n"
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
}

// Nothing in a folder makes a build panic or write what cannot be read.
func FuzzBuild(f *testing.F) {
	tool := "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: a}\nspec: {description: A, input_schema: {type: object}, mock_result: {}}\n"
	f.Add("resources: [t.yaml]\nnamePrefix: p-\npatches: [{path: p.yaml}]\n", tool, tool)
	f.Add("resources: [t.yaml]\npatches: [{path: p.yaml, target: {kind: Tool}}]\n", tool, "[{op: move, from: /spec/description, path: /spec/input_schema/x}, {op: remove, path: /spec}]")
	f.Add("resources: [t.yaml]\nnamespace: x\nreplacements: [{source: {kind: Tool, name: a}, targets: [{select: {kind: Tool}, fieldPaths: [spec.description, 'spec.x.[a=b].*'], options: {delimiter: /, index: 3, create: true}}]}]\n", tool+"---\n"+tool, "x: &a [*a]")
	f.Fuzz(func(t *testing.T, kustomization, resource, patch string) {
		dir := t.TempDir()
		write(t, dir, map[string]string{"kustomization.yaml": kustomization, "t.yaml": resource, "p.yaml": patch})
		b, err := overlay.Build(t.Context(), dir, dir)
		if err != nil || len(b.Violations) > 0 {
			return
		}
		text, err := overlay.Write(b.Trees)
		if err != nil {
			t.Fatal(err)
		}
		manifest.ReadTrees(b.Trees, manifest.Options{})
		if again, _ := manifest.Trees("built", text); len(again) != len(b.Trees) {
			t.Errorf("%d objects are written as %d: %s", len(b.Trees), len(again), text)
		}
	})
}

func ExampleBuild() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"kustomization.yaml": "resources: [pay.yaml]\nnamePrefix: prod-\n",
		"pay.yaml":           "apiVersion: toolctl.dev/v1\nkind: ToolPolicy\nmetadata: {name: rules}\nspec: {blocklist: [\"drop-*\"]} # nobody drops\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	built, err := overlay.Build(context.Background(), dir, "")
	if err != nil {
		panic(err)
	}
	text, err := overlay.Write(built.Trees)
	fmt.Println(string(text), err)
	// Output:
	// apiVersion: toolctl.dev/v1
	// kind: ToolPolicy
	// metadata: {name: prod-rules}
	// spec: {blocklist: ["drop-*"]} # nobody drops
	//  <nil>
}

// Package kustomizetest compares builds with those of kustomize itself, in a module of its
// own so that nobody else needs kustomize.
package kustomizetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"toolctl.dev/toolctl/pkg/overlay"
)

// What is not generated is what differs on purpose (docs/overlays.md): names in references,
// integers beyond 2^53, timestamps, ConfigMaps, the order of objects, patches that fit nothing.

func word(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "pay", "on", "x-y", "5", "true", "1e3", "é"}).Draw(t, label)
}

func scalar(t *rapid.T) any {
	switch rapid.IntRange(0, 4).Draw(t, "scalar") {
	case 0:
		return rapid.IntRange(-1000, 1000).Draw(t, "int")
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.SampledFrom([]float64{0.5, -2.25, 1e21}).Draw(t, "float")
	}
	return word(t, "text")
}

// members are those of an object. A key says the kind of its value, so that a patch seldom
// puts a value of another kind, which both refuse.
func members(t *rapid.T, depth int, nulls bool) map[string]any {
	m := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		kind := rapid.SampledFrom([]string{"m", "l", "s", "s"}).Draw(t, "kind")
		key := kind + word(t, "key")
		switch {
		case nulls && rapid.IntRange(0, 4).Draw(t, "null") == 0:
			m[key] = nil
		case kind == "m" && depth > 0:
			m[key] = members(t, depth-1, nulls)
		case kind == "l" && depth > 0:
			list := make([]any, rapid.IntRange(0, 3).Draw(t, "items"))
			for i := range list {
				if list[i] = scalar(t); rapid.Bool().Draw(t, "nested") {
					list[i] = members(t, depth-1, false)
				}
			}
			m[key] = list
		case rapid.IntRange(0, 30).Draw(t, "other") == 0:
			m[key] = []any{"of another kind"}
		default:
			m["s"+key[1:]] = scalar(t)
		}
	}
	return m
}

func object(t *rapid.T, name string, nulls bool) map[string]any {
	meta := map[string]any{"name": name}
	if rapid.Bool().Draw(t, "labelled") {
		meta["labels"] = map[string]any{"team": "pay"}
	}
	return map[string]any{"apiVersion": "toolctl.dev/v1", "kind": "Tool", "metadata": meta, "spec": map[string]any{"description": "d" + word(t, "description"), "k": members(t, 3, nulls), "l": members(t, 2, nulls)}}
}

func write(t *rapid.T, path string, v any) {
	data, err := yaml.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// layer is a kustomization over what is below it.
func layer(t *rapid.T, names []string) map[string]any {
	k := map[string]any{}
	if rapid.Bool().Draw(t, "namespaced") {
		k["namespace"] = "ns" + rapid.SampledFrom([]string{"1", "2"}).Draw(t, "namespace")
	}
	if rapid.Bool().Draw(t, "prefixed") {
		k["namePrefix"] = rapid.SampledFrom([]string{"p-", "q-"}).Draw(t, "prefix")
	}
	if rapid.Bool().Draw(t, "suffixed") {
		k["nameSuffix"] = rapid.SampledFrom([]string{"-s", "-v2"}).Draw(t, "suffix")
	}
	if rapid.Bool().Draw(t, "labels") {
		k["labels"] = []any{map[string]any{"pairs": map[string]any{"env": word(t, "label")}}}
	}
	if rapid.Bool().Draw(t, "common") {
		k["commonLabels"] = map[string]any{"team": word(t, "label")}
	}
	if rapid.Bool().Draw(t, "annotations") {
		k["commonAnnotations"] = map[string]any{"note": word(t, "annotation")}
	}
	var patches []any
	for range rapid.IntRange(0, 3).Draw(t, "patches") {
		name := rapid.SampledFrom(names).Draw(t, "patched")
		p := map[string]any{}
		switch rapid.IntRange(0, 2).Draw(t, "patch") {
		case 0:
			o := object(t, name, true)
			text, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			p["patch"] = string(text)
		case 1:
			text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "ignored"}, "apiVersion": "toolctl.dev/v1", "kind": "Tool", "spec": map[string]any{"k": members(t, 2, true)}})
			if err != nil {
				t.Fatal(err)
			}
			p["patch"], p["target"] = string(text), map[string]any{"kind": "Tool", "name": name}
		case 2:
			text, err := json.Marshal([]any{
				map[string]any{"op": "add", "path": "/spec/l", "value": members(t, 2, false)},
				map[string]any{"op": "test", "path": "/kind", "value": "Tool"},
				map[string]any{"op": "copy", "from": "/spec/l", "path": "/spec/m"},
				map[string]any{"op": "replace", "path": "/spec/description", "value": word(t, "new")},
			})
			if err != nil {
				t.Fatal(err)
			}
			p["patch"], p["target"] = string(text), map[string]any{"kind": "Tool", "name": name}
		}
		patches = append(patches, p)
	}
	if patches != nil {
		k["patches"] = patches
	}
	return k
}

// byName decodes a stream of objects.
func byName(t *rapid.T, docs [][]byte) map[string]any {
	all := map[string]any{}
	for _, d := range docs {
		var v map[string]any
		if err := yaml.Unmarshal(d, &v); err != nil {
			t.Fatalf("%v in %s", err, d)
		}
		meta := v["metadata"].(map[string]any)
		all[fmt.Sprint(meta["namespace"], "/", meta["name"])] = v
	}
	return all
}

// same compares what kustomize gives with what is given here. Where a patch puts a number or
// boolean in the place of a quoted text, kustomize keeps the quotes.
func same(w, g any) bool {
	switch w := w.(type) {
	case map[string]any:
		g, ok := g.(map[string]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for k := range w {
			if _, ok := g[k]; !ok || !same(w[k], g[k]) {
				return false
			}
		}
		return true
	case []any:
		g, ok := g.([]any)
		return ok && slices.EqualFunc(w, g, same)
	case string:
		return w == fmt.Sprint(g)
	}
	return reflect.DeepEqual(w, g)
}

func TestBuildsAreThoseOfKustomize(t *testing.T) {
	dir := t.TempDir()
	n, built, refused := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		root := filepath.Join(dir, fmt.Sprint(n))
		defer os.RemoveAll(root)
		names := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "objects")]
		var files []any
		for _, name := range names {
			write(t, filepath.Join(root, "base", name+".yaml"), object(t, name, false))
			files = append(files, name+".yaml")
		}
		base := layer(t, names)
		base["resources"] = files
		write(t, filepath.Join(root, "base", "kustomization.yaml"), base)
		top := layer(t, names)
		top["resources"] = []any{"../base"}
		write(t, filepath.Join(root, "top", "kustomization.yaml"), top)

		want, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "top"))
		got, gotErr := overlay.Build(t.Context(), filepath.Join(root, "top"), "")
		if gotErr != nil {
			t.Fatal(gotErr)
		}
		if (err != nil) != (len(got.Violations) > 0) {
			t.Fatalf("kustomize: %v\nhere: %v", err, got.Violations)
		}
		if err != nil {
			refused++
			return
		}
		built++
		var wantDocs, gotDocs [][]byte
		for _, r := range want.Resources() {
			text, err := r.AsYAML()
			if err != nil {
				t.Fatal(err)
			}
			wantDocs = append(wantDocs, text)
		}
		for _, tree := range got.Trees {
			text, err := yaml.Marshal(tree.Node)
			if err != nil {
				t.Fatal(err)
			}
			gotDocs = append(gotDocs, text)
		}
		if w, g := byName(t, wantDocs), byName(t, gotDocs); !same(w, g) {
			t.Fatalf("kustomize: %#v\nhere:      %#v", w, g)
		}
	})
	t.Logf("%d trees built, %d refused by both", built, refused)
	if built < refused {
		t.Error("most trees are refused: the test says little")
	}
}

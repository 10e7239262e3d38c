package openapi_test

import (
	"os"
	"path/filepath"
	"testing"

	"toolctl.dev/toolctl/pkg/openapi"
)

// FuzzImport: whatever the document, the import ends, does not panic, makes only
// manifests that keep all rules, and makes the same ones again.
func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if filepath.Ext(name) != ".golden" {
			f.Add(data)
		}
	}
	f.Add([]byte(petDoc))
	f.Add([]byte(`{"openapi": "3.1.0", "info": {}, "paths": {"/{a}": {"post": {"requestBody": {"content": {"*/*": {"schema": {"$ref": "#/paths/~1{a}/post/requestBody/content/*~1*/schema"}}}}}}}}`))
	f.Add([]byte("openapi: 3.0\npaths: {/a: &a {get: {parameters: [{name: a, in: query, schema: *a}]}}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		doc, err := openapi.Parse(data, "doc.yaml", "", nil)
		if err != nil {
			return
		}
		o := openapi.Options{Server: "https://api.example"}
		set, err := doc.Import(t.Context(), o)
		if err != nil {
			return
		}
		checkTools(t, set)
		again, err := openapi.Parse(data, "doc.yaml", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		second, err := again.Import(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if stream(t, set)+report(set) != stream(t, second)+report(second) {
			t.Error("a second import differs")
		}
	})
}

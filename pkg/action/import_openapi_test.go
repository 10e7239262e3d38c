package action_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/openapi"
)

const petstore = `openapi: 3.0.3
info: {title: Pets, version: "1"}
servers: [{url: https://pets.example.com}]
paths:
  /pets:
    get: {operationId: listPets, summary: List pets, responses: {"200": {description: ok}}}
`

// TestImportOpenAPI checks that a second import into a folder uses the options of the first, unless they are given
// again.
func TestImportOpenAPI(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pets")
	var taken []string
	run := func(change func(*action.ImportOpenAPI)) (*action.ImportedOpenAPI, error) {
		taken = nil
		i := &action.ImportOpenAPI{Config: &action.Config{Stdin: io.NopCloser(strings.NewReader(petstore))}, Source: "-", Dir: dir, Taken: func(flags []string) { taken = flags }}
		change(i)
		return i.Run(t.Context())
	}
	if r, err := run(func(i *action.ImportOpenAPI) {
		i.Tools.Prefix = "shop-"
		i.Given = func(f string) bool { return f == "prefix" }
	}); err != nil || len(r.Report.Changes) != 1 || taken != nil {
		t.Fatalf("got %+v, %v, taken %v", r, err, taken)
	}
	r, err := run(func(*action.ImportOpenAPI) {})
	if err != nil || r.Report.Changes[0].Action != openapi.ActionUnchanged || !slices.Equal(taken, []string{"--prefix shop-"}) {
		t.Errorf("got %+v, %v, taken %v", r, err, taken)
	}
	if r, err := run(func(i *action.ImportOpenAPI) { i.Dir, i.Include = "", []string{"tag=none"} }); err != nil || !r.Empty() || r.Report != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, change := range []func(*action.ImportOpenAPI){
		func(i *action.ImportOpenAPI) { i.Dir, i.Folder.Prune = "", true },
		func(i *action.ImportOpenAPI) { i.Include = []string{"none"} },
		func(i *action.ImportOpenAPI) { i.Source = "none.yaml" },
	} {
		if _, err := run(change); !wrong(err) {
			t.Errorf("got %v, want wrong usage", err)
		}
	}
}

// TestListSorted checks that a list is sorted before a page is selected.
func TestListSorted(t *testing.T) {
	c := config(t, folder(t, map[string]string{"a": "3", "b": "1", "c": "2"}))
	r, err := (&action.List{Config: c, SortBy: ".spec.mock_result.said", Limit: 2, Offset: 1}).Run(t.Context())
	if err != nil || r.Total != 3 || len(r.Items) != 2 || r.Items[0].Object.Head().Metadata.Name != "c" || r.Items[1].Object.Head().Metadata.Name != "a" {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, field := range []string{"{", ".spec.none"} {
		if _, err := (&action.List{Config: c, SortBy: field}).Run(t.Context()); !wrong(err) {
			t.Errorf("%s: got %v, want wrong usage", field, err)
		}
	}
}

// TestImport checks that unsupported parts are noted, and that an unreadable file is invalid.
func TestImport(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "none", "", "hi")
	i := &action.Import{File: filepath.Join(dir, "none.yaml"), As: action.MCPConfig, Read: readAll("{}")}
	if _, err := i.Run(t.Context()); !errors.As(err, new(*action.InvalidError)) {
		t.Errorf("got %v, want that it is invalid", err)
	}
	i.Read = readAll(`{"mcpServers": {"docs": {"command": "docs-server"}}}`)
	objects, err := i.Run(t.Context())
	if err != nil || len(objects) != 1 || objects[0].Head().Kind != v1.KindMCPServer {
		t.Fatalf("got %v, %v", objects, err)
	}
	if paths, err := action.WriteManifests(dir, objects, false); err != nil || len(paths) != 1 {
		t.Errorf("got %v, %v", paths, err)
	}
	if paths, err := action.WriteManifests(dir, objects, false); err == nil || len(paths) != 0 {
		t.Errorf("got %v, want that the file is there", paths)
	}
}

func readAll(text string) func(context.Context, string, int) ([]byte, error) {
	return func(context.Context, string, int) ([]byte, error) { return []byte(text), nil }
}

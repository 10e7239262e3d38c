package action_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/importer"
	"toolctl.dev/toolctl/pkg/manifest"
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
	run := func(change func(*action.Import, *action.ImportOpenAPI)) (*importer.Result, error) {
		from := &action.ImportOpenAPI{Source: "-"}
		i := &action.Import{Config: &action.Config{Stdin: strings.NewReader(petstore)}, From: from, Dir: dir}
		change(i, from)
		return i.Run(t.Context())
	}
	if r, err := run(func(_ *action.Import, from *action.ImportOpenAPI) {
		from.Prefix = "shop-"
		from.Given = func(f string) bool { return f == "prefix" }
	}); err != nil || len(r.Changes) != 1 || r.Reused != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	r, err := run(func(*action.Import, *action.ImportOpenAPI) {})
	if err != nil || r.Changes[0].Action != importer.ActionUnchanged || !slices.Equal(r.Reused, []string{"--prefix shop-"}) {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := run(func(i *action.Import, from *action.ImportOpenAPI) { i.Dir, from.Include = "", []string{"tag=none"} }); !errors.As(err, new(*action.EmptyError)) || r.Changes != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, change := range []func(*action.Import, *action.ImportOpenAPI){
		func(i *action.Import, _ *action.ImportOpenAPI) { i.Dir, i.Prune = "", true },
		func(_ *action.Import, from *action.ImportOpenAPI) { from.Include = []string{"none"} },
		func(_ *action.Import, from *action.ImportOpenAPI) { from.Source = "none.yaml" },
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

// TestImport checks that an unreadable file is invalid, and that files are overwritten only if that is forced.
func TestImport(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "none", "", "hi")
	i := &action.Import{Config: &action.Config{}, From: action.ImportFile{File: filepath.Join(dir, "none.yaml"), As: action.MCPConfig}}
	if _, err := i.Run(t.Context()); !errors.As(err, new(*action.InvalidError)) {
		t.Errorf("got %v, want that it is invalid", err)
	}
	run := func(change func(*action.Import)) (*importer.Result, error) {
		i := &action.Import{Config: &action.Config{}, Dir: dir}
		i.Stdin = strings.NewReader(`{"mcpServers": {"docs": {"command": "docs-server", "shady": true}}}`)
		i.From = action.ImportFile{File: "-", As: action.MCPConfig}
		change(i)
		return i.Run(t.Context())
	}
	if r, err := run(func(i *action.Import) { i.Namespace = "team" }); err != nil || len(r.Changes) != 1 || len(r.Warnings) != 1 || r.Manifests[0].Object.Head().Namespace() != "team" {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := run(func(*action.Import) {}); err == nil || len(r.Changes) != 0 {
		t.Errorf("got %+v, %v, want that the file exists", r, err)
	}
	if r, err := run(func(i *action.Import) { i.Force = true }); err != nil || len(r.Changes) != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestImportOfOneName checks that a tool and a prompt with the same name get a file each.
func TestImportOfOneName(t *testing.T) {
	dir := t.TempDir()
	i := &action.Import{Config: &action.Config{}, Dir: dir, From: action.ImportFile{File: "-", As: action.PromptPack}}
	i.Stdin = strings.NewReader(`{"prompts": {"help": {"system_template": "Help"}}, "tools": {"help": {"description": "Helps"}}}`)
	if _, err := i.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if set, err := manifest.Load(t.Context(), []string{dir}, manifest.Options{}); err != nil || len(set.Objects) != 2 {
		t.Errorf("got %+v, %v, want two objects", set, err)
	}
}

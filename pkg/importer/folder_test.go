package importer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toolctl.dev/toolctl/pkg/importer"
	"toolctl.dev/toolctl/pkg/openapi"
)

const petDoc = `
openapi: 3.0.3
info: {title: Pets, version: "1"}
servers: [{url: https://pets.example}]
paths:
  /pets:
    get:
      operationId: listPets
      summary: List pets
      tags: [read]
      parameters:
        - {name: limit, in: query, schema: {type: integer, maximum: 100}}
      responses: {'204': {description: none}}
    post:
      operationId: createPet
      summary: Add a pet
      tags: [write]
      requestBody: {required: true, content: {application/json: {schema: {type: object, required: [name], properties: {name: {type: string}}}}}}
      responses: {'204': {description: none}}
`

// a folder is a place where documents are imported again and again.
type folder struct {
	t    *testing.T
	dir  string
	from string // the folder of the document
}

func newFolder(t *testing.T) *folder { return &folder{t: t, dir: filepath.Join(t.TempDir(), "tools")} }

func (f *folder) importDoc(text string, o importer.WriteOptions) *importer.Result {
	f.t.Helper()
	r, err := f.tryImport(text, openapi.Options{}, o)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *folder) tryImport(text string, o openapi.Options, fo importer.WriteOptions) (*importer.Result, error) {
	f.t.Helper()
	doc, err := openapi.Parse([]byte(text), filepath.Join(f.from, "pets.yaml"), "", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	set, err := doc.Import(f.t.Context(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	return &set.Result, set.Write(f.t.Context(), f.dir, fo)
}

func (f *folder) read(name string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

// edit replaces text of a file, which must be there once.
func (f *folder) edit(name, from, to string) {
	f.t.Helper()
	text := f.read(name)
	if strings.Count(text, from) != 1 {
		f.t.Fatalf("%s: %q is there %d times\n%s", name, from, strings.Count(text, from), text)
	}
	f.write(name, strings.Replace(text, from, to, 1))
}

func (f *folder) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// all returns every file of the folder.
func (f *folder) all() map[string]string {
	f.t.Helper()
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	m := map[string]string{}
	for _, e := range entries {
		m[e.Name()] = f.read(e.Name())
	}
	return m
}

func summary(r *importer.Result) []string {
	var out []string
	for _, c := range r.Changes {
		line := c.Action + " " + c.File
		for _, k := range c.Conflicts {
			line += fmt.Sprintf(" [%s ours=%s theirs=%s]", k.Path, k.Ours, k.Theirs)
		}
		for _, violation := range c.Violations {
			line += " error: " + violation.String()
		}
		out = append(out, line)
	}
	return out
}

func (f *folder) want(r *importer.Result, lines ...string) {
	f.t.Helper()
	if diff := cmp.Diff(lines, summary(r)); diff != "" {
		f.t.Errorf("report (-want +got):\n%s", diff)
	}
}

func replace(t *testing.T, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("no %q", from)
	}
	return strings.Replace(text, from, to, 1)
}

func TestImportAgainChangesNothing(t *testing.T) {
	f := newFolder(t)
	f.want(f.importDoc(petDoc, importer.WriteOptions{}), "created create-pet.yaml", "created list-pets.yaml")
	before := f.all()
	if _, ok := before[importer.LockFile]; !ok || len(before) != 3 {
		t.Errorf("files: %v", before)
	}
	f.want(f.importDoc(petDoc, importer.WriteOptions{}), "unchanged create-pet.yaml", "unchanged list-pets.yaml")
	if diff := cmp.Diff(before, f.all()); diff != "" {
		t.Error(diff)
	}
}

func TestHandEditsAreKept(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	f.edit("list-pets.yaml", "spec:\n", "# Ask Ann before changing this.\nspec:\n  timeout_ms: 5000 # slow upstream\n")
	f.edit("list-pets.yaml", "description: List pets", "description: 'All pets, newest first'")
	// The document changes another field of the same tool, and adds one.
	next := replace(t, petDoc, "maximum: 100}}", "maximum: 50}}\n        - {name: sort, in: query, schema: {type: string}}")
	f.want(f.importDoc(next, importer.WriteOptions{}), "unchanged create-pet.yaml", "merged list-pets.yaml")
	got := f.read("list-pets.yaml")
	for _, want := range []string{"# Ask Ann before changing this.\n", "timeout_ms: 5000 # slow upstream", "description: 'All pets, newest first'", "maximum: 50", "      sort:\n        type: string", "- limit\n      - sort"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	before := f.all()
	f.want(f.importDoc(next, importer.WriteOptions{}), "unchanged create-pet.yaml", "unchanged list-pets.yaml")
	if diff := cmp.Diff(before, f.all()); diff != "" {
		t.Error(diff)
	}
}

func TestCommentsAloneAreKept(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	f.edit("create-pet.yaml", "spec:\n", "# A note.\nspec:\n")
	next := replace(t, petDoc, "summary: Add a pet", "summary: Add one pet")
	f.want(f.importDoc(next, importer.WriteOptions{}), "merged create-pet.yaml", "unchanged list-pets.yaml")
	if got := f.read("create-pet.yaml"); !strings.Contains(got, "# A note.\n") || !strings.Contains(got, "description: Add one pet") {
		t.Error(got)
	}
}

func TestConflictKeepsOurs(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	f.edit("list-pets.yaml", "maximum: 100", "maximum: 10")
	next := replace(t, petDoc, "maximum: 100", "maximum: 200")
	r := f.importDoc(next, importer.WriteOptions{})
	f.want(r, "unchanged create-pet.yaml", "merged list-pets.yaml [/spec/input_schema/properties/limit/maximum ours=10 theirs=200]")
	if r.Conflicts() != 1 {
		t.Errorf("%d conflicts", r.Conflicts())
	}
	if got := f.read("list-pets.yaml"); !strings.Contains(got, "maximum: 10\n") {
		t.Error(got)
	}
	// It is told once: the file is the decision.
	if r := f.importDoc(next, importer.WriteOptions{}); r.Conflicts() != 0 {
		t.Errorf("told again: %v", summary(r))
	}
}

// TestProvenanceIsNoConflict: who removed or changed an annotation of the import
// is not asked about it.
func TestProvenanceIsNoConflict(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	f.edit("list-pets.yaml", "    toolctl.dev/openapi-operation: GET /pets\n", "")
	f.edit("list-pets.yaml", "openapi-source: pets.yaml", "openapi-source: mine")
	text := f.read("create-pet.yaml")
	from, to := strings.Index(text, "  annotations:"), strings.Index(text, "spec:")
	f.write("create-pet.yaml", text[:from]+text[to:])
	next := replace(t, strings.ReplaceAll(petDoc, "204", "200"), `version: "1"`, `version: "2"`)
	f.want(f.importDoc(next, importer.WriteOptions{}), "unchanged create-pet.yaml", "merged list-pets.yaml")
	if got := f.read("list-pets.yaml"); strings.Contains(got, "openapi-operation") || !strings.Contains(got, "openapi-source: pets.yaml") {
		t.Error(got)
	}
}

// TestOtherVersionOrFolder: the version of a document and the folder it is read from are no change of a manifest. What
// an earlier import wrote of the version goes.
func TestOtherVersionOrFolder(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	f.edit("list-pets.yaml", "  annotations:\n", "  annotations:\n    toolctl.dev/openapi-version: \"1\"\n")
	next := replace(t, petDoc, `version: "1"`, `version: "2"`)
	f.from = "elsewhere"
	f.want(f.importDoc(next, importer.WriteOptions{}), "unchanged create-pet.yaml", "merged list-pets.yaml")
	if got := f.read("list-pets.yaml"); strings.Contains(got, "openapi-version") || strings.Contains(got, "elsewhere") {
		t.Error(got)
	}
}

func TestOperationGone(t *testing.T) {
	next := petDoc[:strings.Index(petDoc, "    post:")]
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	f.want(f.importDoc(next, importer.WriteOptions{}), "gone create-pet.yaml", "unchanged list-pets.yaml")
	f.read("create-pet.yaml")
	f.want(f.importDoc(next, importer.WriteOptions{Prune: true, DryRun: true}), "pruned create-pet.yaml", "unchanged list-pets.yaml")
	f.read("create-pet.yaml")
	f.want(f.importDoc(next, importer.WriteOptions{Prune: true}), "pruned create-pet.yaml", "unchanged list-pets.yaml")
	if _, ok := f.all()["create-pet.yaml"]; ok {
		t.Error("it is still there")
	}
	f.want(f.importDoc(petDoc, importer.WriteOptions{}), "created create-pet.yaml", "unchanged list-pets.yaml")
}

func TestPruneKeepsHandEdits(t *testing.T) {
	next := petDoc[:strings.Index(petDoc, "    post:")]
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	f.edit("create-pet.yaml", "description: Add a pet", "description: Mine")
	r := f.importDoc(next, importer.WriteOptions{Prune: true})
	if r.Conflicts() != 1 || r.Changes[0].Action != importer.ActionGone {
		t.Errorf("%v", summary(r))
	}
	f.read("create-pet.yaml")
}

func TestFileRemovedByHandStaysRemoved(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	if err := os.Remove(filepath.Join(f.dir, "create-pet.yaml")); err != nil {
		t.Fatal(err)
	}
	f.want(f.importDoc(petDoc, importer.WriteOptions{}), "absent create-pet.yaml", "unchanged list-pets.yaml")
	if _, ok := f.all()["create-pet.yaml"]; ok {
		t.Error("it came back")
	}
}

func TestForeignFileIsNotTouched(t *testing.T) {
	f := newFolder(t)
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f.write("create-pet.yaml", "mine: true\n")
	r := f.importDoc(petDoc, importer.WriteOptions{})
	f.want(r, "refused create-pet.yaml", "created list-pets.yaml")
	if r.Conflicts() != 1 || f.read("create-pet.yaml") != "mine: true\n" {
		t.Error("the file was touched")
	}
}

func TestOperationMoves(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	f.edit("list-pets.yaml", "description: List pets", "description: Mine")
	moved := strings.Replace(petDoc, "/pets:", "/v2/pets:", 1)
	f.want(f.importDoc(moved, importer.WriteOptions{}), "updated create-pet.yaml", "merged list-pets.yaml")
	if got := f.read("list-pets.yaml"); !strings.Contains(got, "url: https://pets.example/v2/pets") || !strings.Contains(got, "description: Mine") {
		t.Error(got)
	}
	renamed := replace(t, moved, "operationId: listPets", "operationId: findPets")
	f.want(f.importDoc(renamed, importer.WriteOptions{}), "unchanged create-pet.yaml", "merged list-pets.yaml")
	if got := f.read("list-pets.yaml"); !strings.Contains(got, "name: find-pets") || !strings.Contains(got, "description: Mine") {
		t.Error(got)
	}
}

func TestFilterLeavesOthersAlone(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	filter, err := openapi.NewFilter([]string{"tag=read"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.tryImport(petDoc, openapi.Options{Filter: filter}, importer.WriteOptions{Prune: true})
	if err != nil {
		t.Fatal(err)
	}
	f.want(r, "unchanged list-pets.yaml")
	f.want(f.importDoc(petDoc, importer.WriteOptions{}), "unchanged create-pet.yaml", "unchanged list-pets.yaml")
}

func TestAnotherAPIIsRefused(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	doc, err := openapi.Parse([]byte(strings.Replace(petDoc, "title: Pets", "title: Cars", 1)), "cars.yaml", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := doc.Import(t.Context(), openapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = set.Write(t.Context(), f.dir, importer.WriteOptions{Prune: true})
	if err == nil || !strings.Contains(err.Error(), `contains the import of "Pets" from pets.yaml`) {
		t.Errorf("got %v", err)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	f := newFolder(t)
	f.want(f.importDoc(petDoc, importer.WriteOptions{DryRun: true}), "created create-pet.yaml", "created list-pets.yaml")
	if _, err := os.Stat(f.dir); !os.IsNotExist(err) {
		t.Errorf("the folder was made: %v", err)
	}
	f.importDoc(petDoc, importer.WriteOptions{})
	before := f.all()
	f.edit("create-pet.yaml", "description: Add a pet", "description: Mine")
	before["create-pet.yaml"] = f.read("create-pet.yaml")
	next := replace(t, petDoc, "summary: Add a pet", "summary: Theirs")
	r := f.importDoc(next, importer.WriteOptions{DryRun: true})
	if r.Conflicts() != 1 {
		t.Errorf("%v", summary(r))
	}
	if diff := cmp.Diff(before, f.all()); diff != "" {
		t.Error(diff)
	}
}

func TestMergedManifestIsChecked(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	f.edit("create-pet.yaml", "spec:\n", "spec:\n  colour: red\n")
	r := f.importDoc(replace(t, petDoc, "summary: Add a pet", "summary: Theirs"), importer.WriteOptions{})
	if len(r.Changes[0].Violations) == 0 || !strings.Contains(r.Changes[0].Violations[0].String(), "create-pet.yaml:") || r.Conflicts() == 0 {
		t.Errorf("%v", summary(r))
	}
}

func TestUnreadableFilesAreReported(t *testing.T) {
	tests := []struct{ name, file, text, want string }{
		{"a manifest that is no YAML", "create-pet.yaml", "a: [", "was changed by hand and cannot be read"},
		{"a lock that is not valid JSON", importer.LockFile, "{", "restore it from version control"},
		{"a lock that leads elsewhere", importer.LockFile, `{"tools": [{"operation": "POST /pets", "file": "../../x.yaml", "manifest": {}}]}`, "is not a file of an import"},
		{"a lock with a broken manifest", importer.LockFile, `{"tools": [{"operation": "POST /pets", "file": "x.yaml", "manifest": 1e9999}]}`, "tools[0].manifest"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFolder(t)
			f.importDoc(petDoc, importer.WriteOptions{})
			f.write(tt.file, tt.text)
			_, err := f.tryImport(petDoc, openapi.Options{}, importer.WriteOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if f.read(tt.file) != tt.text {
				t.Error("the file was touched")
			}
		})
	}
}

// TestAliasesSurvive: a file that a person wrote with an anchor says the right
// thing after a merge, even where its text cannot be kept.
func TestAliasesSurvive(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	f.edit("list-pets.yaml", "maximum: 100", "maximum: &most 100\n        x-most: *most")
	r := f.importDoc(replace(t, petDoc, "maximum: 100", "maximum: 70"), importer.WriteOptions{})
	got := f.read("list-pets.yaml")
	if !strings.Contains(got, "maximum: 70") || !strings.Contains(got, "x-most: 100") || len(r.Changes[1].Violations) > 0 {
		t.Errorf("%v\n%s", summary(r), got)
	}
}

func TestSwappedNamesDoNotOverwrite(t *testing.T) {
	f := newFolder(t)
	f.importDoc(petDoc, importer.WriteOptions{})
	swapped := strings.NewReplacer("operationId: listPets", "operationId: createPet", "operationId: createPet", "operationId: listPets").Replace(petDoc)
	r := f.importDoc(swapped, importer.WriteOptions{})
	f.want(r, "updated create-pet.yaml", "updated list-pets.yaml")
	if got := f.read("list-pets.yaml"); !strings.Contains(got, "name: create-pet") || !strings.Contains(got, "method: GET") {
		t.Error(got)
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for n := range f.all() {
			if !yield(n) {
				return
			}
		}
	})
	if diff := cmp.Diff([]string{"create-pet.yaml", "list-pets.yaml", importer.LockFile}, names); diff != "" {
		t.Error(diff)
	}
}

// TestFolderOrder: a document whose properties only stand in another order changes the files, and the report says that
// this is all; a file that a person changed keeps its order.
func TestFolderOrder(t *testing.T) {
	f := newFolder(t)
	const fields = "{name: {type: string}, born: {type: string}, age: {type: integer}}"
	text := strings.Replace(petDoc, "{name: {type: string}}", fields, 1)
	f.importDoc(text, importer.WriteOptions{})
	first := f.read("create-pet.yaml")
	if !inOrder(first, "name:\n        type", "born:", "age:", "required:") {
		t.Errorf("the properties are not in the order of the document:\n%s", first)
	}
	other := strings.Replace(text, fields, "{age: {type: integer}, born: {type: string}, name: {type: string}}", 1)
	r := f.importDoc(other, importer.WriteOptions{})
	if c := changeOf(t, r, "create-pet.yaml"); c.Action != importer.ActionUpdated || !c.OrderOnly {
		t.Errorf("%+v", c)
	}
	if c := changeOf(t, r, "list-pets.yaml"); c.Action != importer.ActionUnchanged || c.OrderOnly {
		t.Errorf("%+v", c)
	}
	f.write("create-pet.yaml", "# mine\n"+strings.Replace(f.read("create-pet.yaml"), "Add a pet", "Add my pet", 1))
	r = f.importDoc(text, importer.WriteOptions{})
	if c := changeOf(t, r, "create-pet.yaml"); c.Action != importer.ActionUnchanged {
		t.Errorf("%+v", c)
	}
}

func inOrder(text string, parts ...string) bool {
	for _, p := range parts {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i:]
	}
	return true
}

func changeOf(t *testing.T, r *importer.Result, file string) importer.Change {
	t.Helper()
	i := slices.IndexFunc(r.Changes, func(c importer.Change) bool { return c.File == file })
	if i < 0 {
		t.Fatalf("no change of %s: %+v", file, r.Changes)
	}
	return r.Changes[i]
}

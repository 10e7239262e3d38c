package schemagen

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
)

// root is the top folder of the repository, seen from a test of this package.
const root = "../.."

func readRepo(t *testing.T) *source {
	t.Helper()
	src, err := readSource(filepath.Join(root, "api", "v1"))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, f := range files {
		want[f.path] = true
		got, err := os.ReadFile(filepath.Join(root, f.path))
		if err != nil {
			t.Errorf("%v: run go generate ./schemas", err)
			continue
		}
		if !bytes.Equal(got, f.data) {
			t.Errorf("%s is stale: run go generate ./schemas\n%s", f.path, cmp.Diff(string(got), string(f.data)))
		}
	}
	have, err := filepath.Glob(filepath.Join(root, "schemas", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range have {
		if !want["schemas/"+filepath.Base(p)] {
			t.Errorf("%s is generated from nothing: delete it", p)
		}
	}
}

func TestGenerateTwiceIsTheSame(t *testing.T) {
	first, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	second, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range first {
		if f.path != second[i].path || !bytes.Equal(f.data, second[i].data) {
			t.Errorf("%s differs between two runs", f.path)
		}
		if !bytes.HasSuffix(f.data, []byte("\n")) || bytes.HasSuffix(f.data, []byte("\n\n")) {
			t.Errorf("%s does not end with one newline", f.path)
		}
	}
}

func TestWriteWritesIntoTheFoldersOfTheRepository(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "api", "v1"), os.DirFS(filepath.Join(root, "api", "v1"))); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"schemas/all.json", "schemas/tool.json", "docs/reference/scenario.md"} {
		if _, err := os.Stat(filepath.Join(dir, p)); err != nil {
			t.Error(err)
		}
	}
}

// The schemas come from the text of the Go source; the decoder works on the Go
// types. Both must see the same fields.
func TestSourceMatchesTheGoTypes(t *testing.T) {
	src := readRepo(t)
	seen := map[reflect.Type]bool{}
	for _, kind := range v1.Kinds() {
		compareType(t, src, reflect.TypeOf(v1.NewObject(kind)).Elem(), seen)
	}
	if len(seen) != len(src.types) {
		t.Errorf("the source leads to %d types, the Go types to %d", len(src.types), len(seen))
	}
}

func compareType(t *testing.T, src *source, typ reflect.Type, seen map[reflect.Type]bool) {
	if seen[typ] {
		return
	}
	seen[typ] = true
	decl := src.types[typ.Name()]
	if decl == nil {
		t.Errorf("type %s is not in the source", typ)
		return
	}
	var want, got []string
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || f.Anonymous {
			continue
		}
		want = append(want, name+" "+goType(f.Type))
		e := f.Type
		for e.Kind() == reflect.Slice && e != reflect.TypeFor[json.RawMessage]() || e.Kind() == reflect.Map || e.Kind() == reflect.Pointer {
			e = e.Elem()
		}
		if e.Kind() == reflect.Struct {
			compareType(t, src, e, seen)
		}
	}
	for _, f := range decl.fields {
		got = append(got, f.name+" "+strings.ReplaceAll(f.typ.String(), kindSchema, kindAny))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-Go types +source):\n%s", typ, diff)
	}
}

func goType(t reflect.Type) string {
	if t == reflect.TypeFor[json.RawMessage]() {
		return kindAny
	}
	switch t.Kind() {
	case reflect.Pointer:
		return goType(t.Elem())
	case reflect.Slice:
		return "[]" + goType(t.Elem())
	case reflect.Map:
		return "map[string]" + goType(t.Elem())
	case reflect.Struct:
		return t.Name()
	case reflect.Bool:
		return kindBoolean
	case reflect.Int, reflect.Int64:
		return kindInteger
	case reflect.Float64:
		return kindNumber
	}
	return t.Kind().String()
}

func TestParseComment(t *testing.T) {
	tests := []struct {
		name, doc string
		want      comment
	}{
		{"no marker", "Size is big.", comment{text: "size is big."}},
		{"all markers", "Size is\nbig. Required. Default: 3.\nExample: 5.\n", comment{text: "size is big.", required: true, deflt: "3", example: "5"}},
		{"default with points", "Size is big. Default: a.b, c. Example: 1.5.", comment{text: "size is big.", deflt: "a.b, c", example: "1.5"}},
		{"required in a sentence", "Size is big. Required for cats.", comment{text: "size is big. Required for cats."}},
		{"example is a question", "Size is big. Example: How big?", comment{text: "size is big.", example: "How big?"}},
		{"example with braces", `Size is big. Example: {a: [b, "c"]}.`, comment{text: "size is big.", example: `{a: [b, "c"]}`}},
		{"another name first", "The size.", comment{text: "The size."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := parseComment("Size", "size", tt.doc)
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestParseCommentTakesApartWhatWasPutTogether(t *testing.T) {
	word := rapid.StringMatching(`[a-z{}\[\]",.0-9/]{0,8}[a-z0-9]( [a-z0-9,/]{1,6}){0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		want := comment{
			text:     "size " + word.Draw(t, "text") + ".",
			required: rapid.Bool().Draw(t, "required"),
			deflt:    rapid.OneOf(rapid.Just(""), word).Draw(t, "default"),
			example:  rapid.OneOf(rapid.Just(""), word).Draw(t, "example"),
		}
		doc := "S" + want.text[1:]
		if want.required {
			doc += " Required."
		}
		if want.deflt != "" {
			doc += "\nDefault: " + want.deflt + "."
		}
		if want.example != "" {
			doc += "\nExample: " + want.example + "."
		}
		if got := parseComment("Size", "size", doc); got != want {
			t.Fatalf("%q: got %+v, want %+v", doc, got, want)
		}
	})
}

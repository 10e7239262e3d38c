package schema_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/schema"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func encode(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestResolve(t *testing.T) {
	root := decode(t, `{"$id":"https://x/root","$defs":{"a/b":{"title":"slash"},"50%":{"title":"percent"},"named":{"$anchor":"here","title":"anchor"},
		"old":{"$id":"#older","title":"older"},"other":{"$id":"https://x/other","$defs":{"hidden":{"$anchor":"hidden"}},"title":"other"}},
		"properties":{"p":{"$dynamicAnchor":"dyn","title":"dynamic"}},"default":{"$anchor":"data"}}`)
	for _, tc := range []struct{ ref, pointer, title string }{
		{"#/$defs/a~1b", "/$defs/a~1b", "slash"},
		{"#/$defs/50%25", "/$defs/50%", "percent"},
		{"#here", "/$defs/named", "anchor"},
		{"#older", "/$defs/old", "older"},
		{"#dyn", "/properties/p", "dynamic"},
		{"https://x/other", "/$defs/other", "other"},
		{"#hidden", "", ""}, // an anchor of another id
		{"#data", "", ""},   // no schema
		{"#/$defs/none", "", ""},
		{"https://x/none", "", ""},
	} {
		part, pointer, ok := schema.NewDocument(root).Resolve(tc.ref)
		o, _ := part.(map[string]any)
		if ok != (tc.title != "") || ok && (pointer != tc.pointer || o["title"] != tc.title) {
			t.Errorf("%s: got %v at %q, %t", tc.ref, part, pointer, ok)
		}
	}
}

func TestWhole(t *testing.T) {
	for _, tc := range []struct{ schema, want string }{
		{`{"$ref":"#/$defs/a","title":"T","$defs":{"a":{"title":"A","type":"object"}}}`, `{"$defs":{"a":{"title":"A","type":"object"}},"title":"T","type":"object"}`},
		{`{"allOf":[{"properties":{"a":{"type":"string","title":"first"}},"required":["a"]},{"properties":{"a":{"title":"second"},"b":{}},"required":["b"]}],"required":["c"]}`,
			`{"properties":{"a":{"title":"second","type":"string"},"b":{}},"required":["a","b","c"]}`},
		{`{"$ref":"#/none","type":"object"}`, `{"$ref":"#/none","type":"object"}`},
		{`true`, `null`},
	} {
		root := decode(t, tc.schema)
		if got := encode(t, schema.Map(schema.NewDocument(root).Whole(root))); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.schema, got, tc.want)
		}
		if encode(t, root) != encode(t, decode(t, tc.schema)) {
			t.Errorf("%s was changed", tc.schema)
		}
	}
}

// References that multiply or lead back to themselves end.
func TestWholeIsBounded(t *testing.T) {
	var defs []string
	for i := range 40 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"},{"$ref":"#none"}]}`, i, i+1, (i+2)%40))
	}
	for _, text := range []string{`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`, `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `}}`} {
		root := decode(t, text)
		doc := schema.NewDocument(root)
		doc.Whole(root)
		doc.Again()
		doc.Whole(root)
	}
}

func TestSubschemas(t *testing.T) {
	root := decode(t, `{"properties":{"items":{"type":"string"},"a/b":true,"c":5},"items":[{},1],"allOf":[{"not":{}}],"dependencies":{"a":["b"],"c":{}},"enum":[{"not":{}}],"x-a":{"not":{}},"prefixItems":[{}]}`)
	for _, tc := range []struct {
		draft schema.Draft
		want  string
	}{
		{0, "/allOf/0 /dependencies/c /properties/a~1b /properties/items /items/0 /prefixItems/0"},
		{schema.Draft7, "/allOf/0 /dependencies/c /properties/a~1b /properties/items /items/0"},
		{schema.Draft2020, "/allOf/0 /dependencies/c /properties/a~1b /properties/items /prefixItems/0"},
	} {
		var got []string
		for _, s := range schema.Subschemas(root, "", tc.draft) {
			got = append(got, s.Pointer)
			if at, _, ok := schema.At(root, s.Pointer); !ok || encode(t, at) != encode(t, s.Schema) {
				t.Errorf("%s names %v", s.Pointer, at)
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: got %s", tc.draft, got)
		}
	}
	out := schema.Replaced(root.(map[string]any), "", 0, func(schema.Subschema) any { return false })
	if got, want := encode(t, out), `{"allOf":[false],"dependencies":{"a":["b"],"c":false},"enum":[{"not":{}}],"items":[false,1],"prefixItems":[false],"properties":{"a/b":false,"c":5,"items":false},"x-a":{"not":{}}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestVocabularyHasAllKeywords(t *testing.T) {
	for _, k := range schema.Keywords {
		if !schema.Known(k.Name) {
			t.Errorf("%s is missing", k.Name)
		}
	}
	if !slices.Contains(schema.Vocabulary, schema.Ref) || schema.Known("require") {
		t.Error("$ref is missing, or require is not")
	}
}

func TestTypes(t *testing.T) {
	for text, want := range map[string]string{`{"type":"string"}`: "[string]", `{"type":["integer","null"]}`: "[integer null]", `{"minItems":1}`: "[array]", `{"required":[],"minimum":1}`: "[object]", `{"title":"T"}`: "[]"} {
		if got := fmt.Sprint(schema.Types(schema.ObjectOf(decode(t, text)))); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

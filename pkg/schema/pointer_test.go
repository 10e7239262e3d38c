package schema_test

import (
	"fmt"
	"testing"

	"toolctl.dev/toolctl/pkg/schema"
)

func TestAt(t *testing.T) {
	doc := map[string]any{"a": []any{1.0, map[string]any{"x/y": nil}}, "m~n": "tilde", "": map[string]any{"": true}}
	for _, tc := range []struct {
		pointer, want, missing string
	}{
		{"", fmt.Sprint(doc), ""},
		{"/a/0", "1", ""},
		{"/a/1/x~1y", "<nil>", ""},
		{"/m~0n", "tilde", ""},
		{"//", "true", ""},
		{"/a/2", "", "2"},
		{"/a/-1", "", "-1"},
		{"/a/0/b", "", "b"},
		{"/b/c", "", "b"},
	} {
		got, missing, ok := schema.At(doc, tc.pointer)
		if ok != (tc.missing == "") || missing != tc.missing || ok && fmt.Sprint(got) != tc.want {
			t.Errorf("%q: got %v, %q, %v", tc.pointer, got, missing, ok)
		}
	}
}

func ExampleAt() {
	doc := map[string]any{"definitions": map[string]any{"city": map[string]any{"type": "string"}}}
	fmt.Println(schema.At(doc, "/definitions/city/type"))
	_, missing, _ := schema.At(doc, "/definitions/country")
	fmt.Println(missing)
	// Output:
	// string  true
	// country
}

package scenario

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/validate"
)

func parse(t testing.TB, text string) any {
	t.Helper()
	doc, err := validate.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return doc
}

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		want, got string
		path      string // path of the first difference; "" for no difference
		expected  string
	}{
		"scalars":                       {want: `1`, got: `1.0`},
		"numbers of many digits":        {want: `12345678901234567890123`, got: `12345678901234567890124`, path: "$", expected: "12345678901234567890123"},
		"exponents":                     {want: `1e3`, got: `1000`},
		"a number is no text":           {want: `1`, got: `"1"`, path: "$", expected: "1"},
		"null is a value":               {want: `{"a":null}`, got: `{"a":null}`},
		"null is not nothing":           {want: `{"a":null}`, got: `{}`, path: "$.a", expected: "null"},
		"subset":                        {want: `{"a":{"b":1}}`, got: `{"a":{"b":1,"c":2},"d":3}`},
		"deep difference":               {want: `{"a":[{"b":1}]}`, got: `{"a":[{"b":2}]}`, path: "$.a[0].b", expected: "1"},
		"equals is exact":               {want: `{"a":{"equals":{"b":1}}}`, got: `{"a":{"b":1,"c":2}}`, path: "$.a", expected: `exactly {"b":1}`},
		"equals takes operators as is":  {want: `{"equals":{"gt":1}}`, got: `{"gt":1}`},
		"arrays by length":              {want: `[1]`, got: `[1,2]`, path: "$", expected: "an array of length 1 [1]"},
		"matches numbers as text":       {want: `{"matches":"^4"}`, got: `42`},
		"matches a bad pattern":         {want: `{"matches":"("}`, got: `42`, path: "$", expected: `a match of "(", which is not a regular expression (RE2)`},
		"contains in text":              {want: `{"contains":"lo"}`, got: `"hello"`},
		"contains in a list by subset":  {want: `{"contains":{"a":1}}`, got: `[{"a":1,"b":2}]`},
		"contains a key":                {want: `{"contains":"a"}`, got: `{"a":1}`},
		"contains not":                  {want: `{"contains":"x"}`, got: `{"a":1}`, path: "$", expected: `something that contains "x"`},
		"gt and lt together":            {want: `{"gt":1,"lt":3}`, got: `2`},
		"gt of an equal number":         {want: `{"gt":0.10}`, got: `0.1`, path: "$", expected: "above 0.10"},
		"lt of an equal number":         {want: `{"lt":0.1}`, got: `0.100`, path: "$", expected: "below 0.1"},
		"gt of texts":                   {want: `{"gt":"a"}`, got: `"b"`},
		"gt of another kind":            {want: `{"gt":1}`, got: `"b"`, path: "$", expected: "above 1"},
		"exists false":                  {want: `{"a":{"exists":false}}`, got: `{"a":null}`, path: "$.a", expected: "nothing"},
		"exists of no boolean":          {want: `{"a":{"exists":1}}`, got: `{}`, path: "$.a", expected: "a condition exists: true or exists: false"},
		"operators of nothing":          {want: `{"a":{"lt":3}}`, got: `{}`, path: "$.a", expected: "below 3"},
		"an operator beside a key":      {want: `{"gt":1,"a":2}`, got: `{"gt":1,"a":2}`},
		"address of one place":          {want: `{"$.a.b":1}`, got: `{"a":{"b":1}}`},
		"address of many places":        {want: `{"$..b":[1,2]}`, got: `{"a":{"b":1},"c":{"b":2}}`},
		"address within a value":        {want: `{"a":{"$[0]":1}}`, got: `{"a":[1]}`},
		"address and members":           {want: `{"$.a":1,"b":3}`, got: `{"a":1,"b":2}`, path: "$.b", expected: "3"},
		"address of nothing":            {want: `{"$.x":{"exists":false}}`, got: `{"a":1}`},
		"many places may be none":       {want: `{"$.x[*]":{"exists":true}}`, got: `{"x":[]}`, path: "$.x[*]", expected: "a value"},
		"keys that need quotes":         {want: `{"a b":{"it's":1}}`, got: `{"a b":{"it's":2}}`, path: `$['a b']['it\'s']`, expected: "1"},
		"address that descends too far": {want: `{"$..a..b..c":1}`, got: `{}`, path: "$", expected: `a JSONPath that can be read: it has 3 times "..", more than 2`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			diff := compare(parse(t, tt.want), parse(t, tt.got))
			if tt.path == "" {
				if len(diff) > 0 {
					t.Fatalf("differs: %+v", diff)
				}
				return
			}
			if len(diff) != 1 || diff[0].Path != tt.path || diff[0].Expected != tt.expected {
				t.Errorf("got %+v, want one at %s that expected %s", diff, tt.path, tt.expected)
			}
		})
	}
}

// anyJSON generates a value without operators and JSONPaths.
func anyJSON(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.IntRange(-9, 9), func(i int) any { return json.Number(string(jsontext.Of(i))) }),
		rapid.Map(rapid.StringMatching(`[a-z]{0,3}`), func(s string) any { return s }),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	return rapid.OneOf(append(leaves,
		rapid.Map(rapid.SliceOfN(anyJSON(depth-1), 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`k[a-z]`), anyJSON(depth-1), 0, 3), func(m map[string]any) any { return m }),
	)...)
}

// TestCompareProperties checks that a value matches itself, also with additional members in its objects, and that
// --update resolves each reported difference.
func TestCompareProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyJSON(3).Draw(t, "a"), anyJSON(3).Draw(t, "b")
		if diff := compare(a, a); len(diff) > 0 {
			t.Fatalf("%s differs from itself: %+v", show(a), diff)
		}
		if len(compareExact(a, b)) == 0 && len(compare(a, b)) > 0 {
			t.Fatalf("%s is exactly %s and not a subset", show(a), show(b))
		}
		if object, ok := a.(map[string]any); ok {
			more := map[string]any{"added": b}
			for k, v := range object {
				more[k] = v
			}
			if diff := compare(a, more); len(diff) > 0 {
				t.Fatalf("%s is no subset of %s: %+v", show(a), show(more), diff)
			}
		}
		if len(compare(a, b)) == 0 && len(compare(b, a)) == 0 && len(compareExact(a, b)) > 0 {
			t.Fatalf("%s and %s contain each other and are not equal", show(a), show(b))
		}
	})
}

func FuzzCompare(f *testing.F) {
	f.Add([]byte(`{"$..a[?@.b > 1]":[1],"c":{"matches":"(a+)+$"}}`), []byte(`{"a":[{"b":2}],"c":"aaaa"}`))
	f.Add([]byte(`{"$[*]":{"contains":{"gt":1}}}`), []byte(`[[1,2]]`))
	f.Fuzz(func(t *testing.T, want, got []byte) {
		a, err := validate.Decode(want)
		if err != nil {
			return
		}
		b, err := validate.Decode(got)
		if err != nil {
			return
		}
		for _, d := range compare(a, b) {
			if d.Expected == "" || d.Path == "" {
				t.Errorf("a difference says nothing: %+v", d)
			}
		}
		if diff := compareExact(a, a); len(diff) > 0 {
			t.Errorf("%s differs from itself: %+v", want, diff)
		}
	})
}

func TestWithout(t *testing.T) {
	doc := parse(t, `{"a":{"b":[1,2,3]},"c/d":4}`)
	got := without(doc, []string{"/a/b/1", "/c~1d", "/x/y", "a", "/a/b/9"})
	if want := `{"a":{"b":[1,3]}}`; string(jsontext.Of(got)) != want {
		t.Errorf("got %s, want %s", string(jsontext.Of(got)), want)
	}
	if want := `{"a":{"b":[1,2,3]},"c/d":4}`; string(jsontext.Of(doc)) != want {
		t.Errorf("the document was changed: %s", string(jsontext.Of(doc)))
	}
}

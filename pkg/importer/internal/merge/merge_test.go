package merge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toolctl.dev/toolctl/pkg/importer/internal/merge"
	"toolctl.dev/toolctl/pkg/manifest"
)

func parse(t testing.TB, text string) any {
	t.Helper()
	v, err := read([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

func read(text []byte) (v any, err error) {
	raw, violations := manifest.ToJSON("", text)
	if raw == nil {
		return nil, fmt.Errorf("%v", violations)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return v, dec.Decode(&v)
}

func TestThree(t *testing.T) {
	tests := []struct {
		name, base, ours, theirs, want string
		conflicts                      []string
	}{
		{name: "only they changed", base: "{a: 1, b: 1}", ours: "{a: 1, b: 1}", theirs: "{a: 2, c: 3}", want: "{a: 2, c: 3}"},
		{name: "only we changed", base: "{a: 1, b: 1}", ours: "{a: 2, c: 3}", theirs: "{a: 1, b: 1}", want: "{a: 2, c: 3}"},
		{name: "different fields", base: "{a: {x: 1, y: 1}}", ours: "{a: {x: 2, y: 1}}", theirs: "{a: {x: 1, y: 2}}", want: "{a: {x: 2, y: 2}}"},
		{name: "the same change", base: "{a: 1}", ours: "{a: 2}", theirs: "{a: 2}", want: "{a: 2}"},
		{name: "both changed", base: "{a: {b: 1}}", ours: "{a: {b: 2}}", theirs: "{a: {b: 3}}", want: "{a: {b: 2}}", conflicts: []string{"/a/b"}},
		{name: "we removed, they changed", base: "{a: 1, z: 1}", ours: "{z: 1}", theirs: "{a: 2, z: 1}", want: "{z: 1}", conflicts: []string{"/a"}},
		{name: "we changed, they removed", base: "{a: 1, z: 1}", ours: "{a: 2, z: 1}", theirs: "{z: 1}", want: "{a: 2, z: 1}", conflicts: []string{"/a"}},
		{name: "both added one object", base: "{z: 1}", ours: "{a: {x: 1}, z: 1}", theirs: "{a: {y: 2}, z: 1}", want: "{a: {x: 1, y: 2}, z: 1}"},
		{name: "lists of names are sets", base: "{r: [a, b]}", ours: "{r: [b, c]}", theirs: "{r: [a, b, d]}", want: "{r: [b, d, c]}"},
		{name: "other lists are one field", base: "{r: [1, 2]}", ours: "{r: [2, 3]}", theirs: "{r: [1, 2, 4]}", want: "{r: [2, 3]}", conflicts: []string{"/r"}},
		{name: "a name with a slash", base: "{a/b: 1}", ours: "{a/b: 2}", theirs: "{a/b: 3}", want: "{a/b: 2}", conflicts: []string{"/a~1b"}},
		{name: "null is a value", base: "{a: 1}", ours: "{a: null}", theirs: "{a: 1}", want: "{a: null}"},
		{name: "an object became text", base: "{a: {x: 1}}", ours: "{a: {x: 2}}", theirs: "{a: t}", want: "{a: {x: 2}}", conflicts: []string{"/a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, conflicts := merge.Three(parse(t, tt.base), parse(t, tt.ours), parse(t, tt.theirs))
			if diff := cmp.Diff(parse(t, tt.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var paths []string
			for _, c := range conflicts {
				paths = append(paths, c.Path)
			}
			if diff := cmp.Diff(tt.conflicts, paths); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThreeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := object().Draw(t, "a"), object().Draw(t, "b")
		same := func(what string, want, got any, conflicts []merge.Conflict) {
			if !merge.Equal(want, got) || len(conflicts) > 0 {
				t.Fatalf("%s: %v, %v", what, cmp.Diff(want, got), conflicts)
			}
		}
		got, c := merge.Three(a, b, a)
		same("only ours changed", b, got, c)
		got, c = merge.Three(a, a, b)
		same("only theirs changed", b, got, c)
		got, c = merge.Three(a, b, b)
		same("both changed alike", b, got, c)
		x := object().Draw(t, "x")
		once, _ := merge.Three(a, b, x)
		// What was merged has nothing left to merge: the next import starts from x.
		got, c = merge.Three(x, once, x)
		same("merged again", once, got, c)
	})
}

func TestEdit(t *testing.T) {
	tests := []struct{ name, text, to, want string }{
		{
			name: "comments, order and styles stay",
			text: "# top\nb: 1 # of b\na:\n  # of y\n  y: 'one'\n  z: \"two\"\n",
			to:   "{b: 2, a: {y: one, z: two, zz: 3}}",
			want: "# top\nb: 2 # of b\na:\n  # of y\n  y: 'one'\n  z: \"two\"\n  zz: 3\n",
		},
		{
			name: "a new field of sorted ones takes its place",
			text: "a: 1\nc: 3\n", to: "{a: 1, b: 2, c: 3}", want: "a: 1\nb: 2\nc: 3\n",
		},
		{
			name: "lists keep the elements around a change",
			text: "l:\n- 1 # one\n- 2\n- 3 # three\n", to: "{l: [1, 5, 6, 3]}", want: "l:\n- 1 # one\n- 5\n- 6\n- 3 # three\n",
		},
		{
			name: "indented lists stay indented",
			text: "l:\n  - 1\n  - 2\n", to: "{l: [1, 3]}", want: "l:\n  - 1\n  - 3\n",
		},
		{name: "removal", text: "a: 1\nb: {c: 1, d: 2}\n", to: "{b: {d: 2}}", want: "b: {d: 2}\n"},
		{name: "words stay text", text: "a: x\n", to: `{a: "yes", "on": "no"}`, want: "a: \"yes\"\n\"on\": \"no\"\n"},
		{name: "a scalar becomes an object", text: "a: 1 # note\n", to: "{a: {b: [1]}}", want: "a:\n  # note\n  b:\n  - 1\n"},
		{name: "an object becomes empty", text: "a: {b: 1}\n", to: "{a: {}}", want: "a: {}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to := parse(t, tt.to)
			got, err := merge.Edit([]byte(tt.text), parse(t, tt.text), to, manifest.MarshalYAML)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !merge.Equal(parse(t, string(got)), to) {
				t.Errorf("the text says something else:\n%s", got)
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	for name, text := range map[string]string{"two documents": "", "no YAML": "a: ["} {
		if _, err := merge.Edit([]byte(text), map[string]any{}, map[string]any{"a": true}, manifest.MarshalYAML); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestEditSaysWhatIsAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := object().Draw(t, "from"), object().Draw(t, "to")
		text, err := manifest.MarshalYAML(from)
		if err != nil {
			t.Fatal(err)
		}
		got, err := merge.Edit(text, from, to, manifest.MarshalYAML)
		if err != nil {
			t.Fatal(err)
		}
		back, err := read(got)
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		if !merge.Equal(to, back) {
			t.Fatalf("%s\n%s", cmp.Diff(to, back), got)
		}
	})
}

// object draws trees that share field names, so that merges meet.
func object() *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"a", "b", "yes", "1", "two words", "x: y", "#", "line\nline"}), func(s string) any { return s }),
		rapid.Map(rapid.IntRange(0, 3), func(i int) any { return json.Number(string(rune('0' + i))) }),
		rapid.Just[any](nil), rapid.Just[any](true),
	)
	list := rapid.Map(rapid.SliceOfN(leaf, 0, 4), func(l []any) any {
		if l == nil {
			l = []any{}
		}
		return l
	})
	key := rapid.SampledFrom(strings.Split("a b c d/e on", " "))
	asAny := func(m map[string]any) any { return m }
	inner := rapid.Map(rapid.MapOfN(key, rapid.OneOf(leaf, list), 0, 4), asAny)
	return rapid.Map(rapid.MapOfN(key, rapid.OneOf(leaf, list, inner), 0, 5), asAny)
}

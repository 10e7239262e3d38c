package doc

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, in string
		want     any
	}{
		{"YAML 1.2 words", "{y: no, on: yes, n: off}", map[string]any{"y": "no", "on": "yes", "n": "off"}},
		{"block YAML", "a: true\nb: ~\nc: 'true'\nd: !!str 1", map[string]any{"a": true, "b": nil, "c": "true", "d": "1"}},
		{"large integers", "a: 123456789012345678901234567890", map[string]any{"a": json.Number("123456789012345678901234567890")}},
		{"number forms", "[+1, 007, 0x1F, 0o17, .5, 1., -0.50, 1e3, 1_000]", []any{json.Number("1"), json.Number("7"), json.Number("31"), json.Number("15"), json.Number("0.5"), json.Number("1.0"), json.Number("-0.50"), json.Number("1e3"), "1_000"}},
		{"no number in JSON", "[.inf, .nan, 2020-01-01, 12:30]", []any{".inf", ".nan", "2020-01-01", "12:30"}},
		{"keys are text", "200: ok\ntrue: yes", map[string]any{"200": "ok", "true": "yes"}},
		{"alias and merge key", "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\nc: {<<: [*x]}\nd: *x", map[string]any{
			"a": map[string]any{"p": json.Number("1"), "q": json.Number("2")}, "b": map[string]any{"p": json.Number("1"), "q": json.Number("3")},
			"c": map[string]any{"p": json.Number("1"), "q": json.Number("2")}, "d": map[string]any{"p": json.Number("1"), "q": json.Number("2")}}},
		{"JSON", ` {"a": [1.10, "\u00e9", null]}`, map[string]any{"a": []any{json.Number("1.10"), "é", nil}}},
		{"byte order mark", "\xef\xbb\xbf{\"a\": 1}", map[string]any{"a": json.Number("1")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	deepAlias := "a0: &a0 [x]\n"
	for i := 1; i < 300; i++ {
		deepAlias += fmt.Sprintf("a%d: &a%d [*a%d]\n", i, i, i-1)
	}
	tests := []struct{ name, in, want string }{
		{"empty", "", "empty"},
		{"only a comment", "# nothing\n", "empty"},
		{"broken JSON", "{\n  \"a\": 1,\n  \"b\" 2\n}", "3:7: not JSON"},
		{"two JSON values", `{"a": 1} {"b": 2}`, "second document"},
		{"two YAML documents", "a: 1\n---\nb: 2\n", "second document"},
		{"deep JSON", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "deeper"},
		{"deep object", strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), "deeper"},
		{"deep YAML", "a: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "deeper"},
		{"billion laughs", laughs, "aliases counted"},
		{"depth by aliases", deepAlias, "deeper"},
		{"alias inside its anchor", "a: &a [*a]", "inside its own anchor"},
		{"exponent", "a: 1e999999999", "the exponent is too large"},
		{"exponent in JSON", `{"a": 1e999999999}`, "the exponent is too large"},
		{"digits", "a: " + strings.Repeat("9", 5000), "5000 digits is too long"},
		{"fewer digits", "a: " + strings.Repeat("9", 500), "out of range"},
		{"hex digits", "a: 0x" + strings.Repeat("f", 5000), "5000 digits is too long"},
		{"a tab", "a:\n\tb: 1", "2:2: not YAML"},
		{"list as key", "? [1]\n: 2\n", "a key must be text"},
		{"unknown anchor", "a: *b", "unknown anchor"},
		{"too large", strings.Repeat("#", MaxBytes+1), "50 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.in))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestParseAgreesWithJSON: JSON read as YAML says the same as JSON read as JSON.
func TestParseAgreesWithJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := tree().Draw(t, "tree")
		text, err := json.Marshal(map[string]any{"v": v})
		if err != nil {
			t.Fatal(err)
		}
		viaJSON, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		yamlText, err := yaml.Marshal(map[string]any{"v": v})
		if err != nil {
			t.Fatal(err)
		}
		viaYAML, err := Parse(yamlText)
		if err != nil {
			t.Fatalf("%v\n%s", err, yamlText)
		}
		if diff := cmp.Diff(viaJSON, viaYAML); diff != "" {
			t.Fatalf("(-json +yaml)\n%s\n%s", diff, yamlText)
		}
	})
}

func tree() *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true),
		rapid.Map(rapid.IntRange(-1<<40, 1<<40), func(i int) any { return i }),
		rapid.Map(rapid.StringMatching(`([a-z0-9:#'"\-{}\[\],&*!|>%@.~][ a-z0-9:#'"\n\-{}\[\],&*!|>%@.~]{0,12})?`), func(s string) any { return s }),
		rapid.Map(rapid.SampledFrom([]string{"no", "y", "on", "null", "1.0", "0x1f", "2020-01-01", "<<", "true", ".5"}), func(s string) any { return s }),
	)
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(leaf, 0, 4), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z~ :]{0,5}`), leaf, 0, 4), func(m map[string]any) any { return m }))
}

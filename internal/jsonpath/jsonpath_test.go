package jsonpath_test

import (
	"strings"
	"testing"

	"toolctl.dev/toolctl/internal/jsonpath"
)

const doc = `{"kind": "List", "items": [
	{"metadata": {"name": "a", "labels": {"team": "pay", "toolctl.dev/group": "g-1"}}, "spec": {"n": 12345678901234567890, "on": true, "tags": ["x", "y"]}},
	{"metadata": {"name": "b"}, "spec": {"n": 2, "none": null, "input-schema": {"type": "object"}}}]}`

// What kubectl prints for the same templates.
func TestTemplate(t *testing.T) {
	tests := []struct{ name, template, want string }{
		{"one value", `{.kind}`, "List"},
		{"without braces", `.kind`, "List"},
		{"without the point", `{kind}`, "List"},
		{"from the root", `{$.kind}`, "List"},
		{"all of a list", `{.items[*].metadata.name}`, "a b"},
		{"text around", `names: {.items[*].metadata.name}.`, "names: a b."},
		{"range", `{range .items[*]}{.metadata.name}{"\t"}{.spec.n}{"\n"}{end}`, "a\t12345678901234567890\nb\t2\n"},
		{"range in a range", `{range .items[*]}{range .spec.tags[*]}<{@}>{end}{end}`, "<x><y>"},
		{"empty range body", `{range .items[*]}{end}`, ""},
		{"root inside a range", `{range .items[*]}{$.kind} {end}`, "List List "},
		{"index", `{.items[0].metadata.name}`, "a"},
		{"last", `{.items[-1:].metadata.name}`, "b"},
		{"point before the bracket", `{.items.[1].metadata.name}`, "b"},
		{"slice", `{.items[0:2].metadata.name}`, "a b"},
		{"union of names", `{.items[0]['metadata','spec']['name','on']}`, "a true"},
		{"filter by text", `{.items[?(@.metadata.name=="b")].spec.n}`, "2"},
		{"filter by number", `{.items[?(@.spec.n<5)].metadata.name}`, "b"},
		{"filter by presence", `{.items[?(@.metadata.labels)].metadata.name}`, "a"},
		{"filter by a name with a dash", `{.items[?(@.spec.input-schema)].metadata.name}`, "b"},
		{"escaped point", `{.items[0].metadata.labels.toolctl\.dev/group}`, "g-1"},
		{"quoted name", `{.items[0].metadata.labels['toolctl.dev/group']}`, "g-1"},
		{"any depth", `{..name}`, "a b"},
		{"object", `{.items[1].spec.input-schema}`, `{"type":"object"}`},
		{"wildcard", `{.items[0].spec.tags.*}`, "x y"},
		{"missing", `<{.items[*].spec.nothing}>`, "<>"},
		{"null", `{.items[1].spec.none}`, "null"},
		{"single quotes", `{.kind}{'\n'}`, "List\n"},
		{"brace in quotes", `{"{}"}`, "{}"},
		{"empty", ``, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := jsonpath.Parse(tt.template)
			if tt.template == "" {
				if err == nil {
					t.Fatal("an empty template is accepted")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := tmpl.Execute(&b, []byte(doc)); err != nil {
				t.Fatal(err)
			}
			if b.String() != tt.want {
				t.Errorf("got %q, want %q", b.String(), tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for template, want := range map[string]string{
		`{.items`:                  "is not closed",
		`{range .items[*]}{.a}`:    "{range} without {end}",
		`{.a}{end}`:                "{end} without {range}",
		`{}`:                       "a path is empty",
		`{.items[}`:                "unexpected eof",
		`{.a..b..c..d}`:            "more than 2",
		`{"a}`:                     "is not closed",
		`{.items[?(@.a==)]}`:       "path",
		strings.Repeat("a", 20000): "longer than",
	} {
		if _, err := jsonpath.Parse(template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want an error with %q", template, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{.items[*].a}`, `{range .a}{@}{end}`, `{.a[?(@.b=="c")]}`, `{'x'}`, `{..a[0:1]}`, `{.a\.b}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tmpl, err := jsonpath.Parse(s)
		if err != nil {
			return
		}
		var b strings.Builder
		if err := tmpl.Execute(&b, []byte(doc)); err != nil {
			t.Error(err)
		}
	})
}

package template

import (
	"errors"
	"strings"
	"testing"
)

func TestParseMustache(t *testing.T) {
	tests := []struct{ name, src, args, want, wantErr string }{
		{name: "variables", src: "{{a}}, {{ b }} and {{c.d}}", args: `{"a": "x", "b": 5, "c": {"d": [1]}}`, want: "x, 5 and [1]"},
		{name: "names that Go does not have", src: "{{user-name}} {{1st}}", args: `{"user-name": "Ann", "1st": true}`, want: "Ann true"},
		{name: "no escaping", src: "{{{a}}}{{&a}}{{{ a }}}", args: `{"a": "<&>"}`, want: "<&><&><&>"},
		{name: "a comment", src: "a{{! b\nc }}d", want: "ad"},
		{name: "braces that are no tag", src: "{a} }} { {", want: "{a} }} { {"},
		{name: "a tag that never closes", src: "x {{a", want: "x {{a"},
		{name: "JSON around a variable", src: `{"a": {"b":"{{a}}"}}`, args: `{"a": 1}`, want: `{"a": {"b":"1"}}`},
		{name: "a value is not read again", src: "{{a}}", args: `{"a": "{{b}}"}`, want: "{{b}}"},
		{name: "missing", src: "a\nb {{a}}", wantErr: `m: line 2: .a: argument "a" is missing`},
		{name: "missing within", src: "{{a.b}}", args: `{"a": {}}`, wantErr: "line 1: .a.b: the value is missing"},
		{name: "null", src: "{{a}}", args: `{"a": null}`, wantErr: `argument "a" is null`},
		{name: "a field of a string", src: "{{a.b}}", args: `{"a": "x"}`, wantErr: "line 1"},
		{name: "a section", src: "x\n\n{{#a}}b{{/a}}", wantErr: "m: line 3: {{#a}} is more than a variable"},
		{name: "a partial", src: "{{> a}}", wantErr: "{{> a}} is more than a variable"},
		{name: "Go's own syntax", src: "{{.city}}", wantErr: "write {{city}}, or set template_syntax: go"},
		{name: "an expression", src: `{{ a | upper }}`, wantErr: "{{ a | upper }} is not the name of a variable"},
		{name: "nothing", src: `{{}}`, wantErr: "{{}} names no variable"},
		{name: "an empty field", src: `{{a..b}}`, wantErr: "{{a..b}} is not the name"},
		{name: "too large", src: strings.Repeat("x", MaxSource+1), wantErr: "the limit is 262144 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := ParseMustache("m", tt.src, Options{})
			got := ""
			if err == nil {
				if tt.args == "" {
					tt.args = "{}"
				}
				got, err = tmpl.Render(t.Context(), decode(t, tt.args))
			}
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %.100q, error %v, want %s", got, err, tt.wantErr)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got  %q, %v\nwant %q", got, err, tt.want)
			}
		})
	}
}

func TestMissingNamesTheArgument(t *testing.T) {
	tmpl, err := ParseText("m", "{{if .a}}{{.b}}{{end}}{{.c.d}}", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{`{"a": 1}`: "b", `{"c": {}}`: "", `{"a": 1, "b": null}`: ""} {
		_, err := tmpl.Render(t.Context(), decode(t, args))
		var own *Error
		if !errors.As(err, &own) || own.Missing != want {
			t.Errorf("%s: error %v with Missing %q, want %q", args, err, own.Missing, want)
		}
	}
}

func TestReadsAll(t *testing.T) {
	tests := map[string]bool{
		`{{.a}}`: false, `{{range .l}}{{.}}{{end}}`: false, `{{with .o}}{{.a}}{{json .}}{{end}}`: false, `{{$.a}}`: false,
		`{{json .}}`: true, `{{index . "a"}}`: true, `{{range .l}}{{json $}}{{end}}`: true, `{{range $k, $v := .}}{{$k}}{{end}}`: true,
	}
	for src, want := range tests {
		tmpl, err := ParseText("m", src, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := tmpl.ReadsAll(); got != want {
			t.Errorf("%s: ReadsAll is %t, want %t", src, got, want)
		}
	}
}

func TestRenderValue(t *testing.T) {
	tmpl, err := ParseText("m", "{{range .}}<{{.}}>{{end}}", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tmpl.RenderValue(t.Context(), []any{"a", 1}); err != nil || got != "<a><1>" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := tmpl.RenderValue(t.Context(), "text"); err == nil {
		t.Error("ranging over a string must fail")
	}
	if tmpl, err = ParseText("m", "{{.}} {{.a}}", Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.RenderValue(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), `argument "a" is missing`) {
		t.Errorf("error is %v", err)
	}
}

// FuzzMustache checks that no source makes the parser panic, and that every accepted source renders within the limits.
func FuzzMustache(f *testing.F) {
	for _, src := range []string{"{{a}}", "{{{a}}}", "{{&a.b}}x{{! c }}", "{{a", "{{#a}}{{/a}}", "{{{a}}", "\xff{{a}}", "{{a.b.c}}"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, err := ParseMustache("m", src, Options{})
		var own *Error
		if err != nil {
			if !errors.As(err, &own) {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		args := map[string]any{}
		for _, name := range tmpl.Fields() {
			args[name] = "v"
		}
		if out, err := tmpl.Render(t.Context(), args); err == nil && len(out) > len(src)+len(src) {
			t.Fatalf("%d bytes rendered to %d", len(src), len(out))
		} else if err != nil && !errors.As(err, &own) {
			t.Fatalf("error of type %T", err)
		}
	})
}

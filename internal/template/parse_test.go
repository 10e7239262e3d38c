package template

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseErrors(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{name: "unclosed action", src: "{\n\"a\": {{.x}", want: `m: line 2: bad character U+007D '}'`},
		{name: "unclosed string", src: "\n{{\"a}}", want: `m: line 2: unterminated quoted string`},
		{name: "no end", src: "{{if .x}}\n1", want: `m: line 2: unexpected EOF`},
		{name: "unknown function", src: "{{env .x}}", want: `m: line 1: function "env" not defined`},
		{name: "undefined variable", src: "{{$x}}", want: `m: line 1: undefined variable "$x"`},
		{name: "action over two lines", src: "{{.x\n", want: `m: line 2: unclosed action started at line 1`},
		{name: "undefined template", src: "1\n{{template \"t\"}}", want: `m: line 2: template "t" is not defined`},
		{name: "template calls itself", src: `{{define "t"}}{{if .}}{{template "t" .}}{{end}}{{end}}{{template "t" .}}`, want: `m: line 1: template "t" calls itself`},
		{name: "templates call each other", src: "{{define \"a\"}}{{template \"b\"}}{{end}}\n{{define \"b\"}}{{template \"a\"}}{{end}}", want: `calls itself`},
		{name: "the whole template calls itself", src: `{{template ""}}`, want: `m: line 1: template "" calls itself`},
		{name: "not UTF-8", src: "1\n\xff", want: `m: line 2: the template is not UTF-8`},
		{name: "too large", src: strings.Repeat(" ", MaxSource+1), want: `m: the template has 262145 bytes: the limit is 262144 bytes`},
		{name: "deep nesting", src: strings.Repeat("{{if 1}}", 200) + strings.Repeat("{{end}}", 200), want: `m: line 1: if, range and with are nested more than 100 deep`},
		{name: "deepest nesting that the size allows", src: strings.Repeat("{{if 1}}", 15000) + strings.Repeat("{{end}}", 15000), want: `m: line 1: if, range and with are nested more than 100 deep`},
		{name: "deep parentheses", src: "{{" + strings.Repeat("(", 9000) + "1" + strings.Repeat(")", 9000) + "}}", want: `m: line 1: parentheses, if, range and with are nested more than 100 deep`},
		{name: "deeper parentheses than the parser takes", src: "{{" + strings.Repeat("(", 100000) + "1", want: `m: line 1: max expression depth exceeded`},
		{name: "many calls in one action", src: "{{print " + strings.Repeat("(print 1) ", 64) + "}}", want: `m: line 1: more than 64 function calls in one action: use variables`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for kind, parse := range map[string]func() error{
				"JSON": func() error { _, err := ParseJSON("m", tt.src); return err },
				"text": func() error { _, err := ParseText("m", tt.src, Options{}); return err },
			} {
				start := time.Now()
				err := parse()
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: got  %v\nwant %s", kind, err, tt.want)
				}
				if took := time.Since(start); took > 5*time.Second {
					t.Errorf("%s: took %v", kind, took)
				}
			}
		})
	}
}

func TestFields(t *testing.T) {
	tests := []struct {
		name, src string
		want      []string
	}{
		{name: "none", src: `1`, want: []string{}},
		{name: "sorted and once", src: `{{.b}} {{.a.c}} {{.b}}`, want: []string{"a", "b"}},
		{name: "in pipelines, conditions and parentheses", src: `{{if eq .a 1}}{{default "x" (lower .b)}}{{else if .c}}{{.d | upper}}{{end}}{{$v := .e}}`, want: []string{"a", "b", "c", "d", "e"}},
		{name: "not of an element", src: `{{range .l}}{{.x}}{{$.y}}{{end}}{{with .o}}{{.z}}{{else}}{{.w}}{{end}}`, want: []string{"l", "o", "w", "y"}},
		{name: "with dot", src: `{{with .}}{{.x}}{{end}}`, want: []string{"x"}},
		{name: "template with dot", src: `{{define "t"}}{{.x}}{{$.y}}{{end}}{{template "t" .}}`, want: []string{"x", "y"}},
		{name: "template with $", src: `{{define "t"}}{{.x}}{{end}}{{range .l}}{{template "t" $}}{{end}}`, want: []string{"l", "x"}},
		{name: "template with another value", src: `{{define "t"}}{{.x}}{{end}}{{template "t" .v}}`, want: []string{"v"}},
		{name: "template with both", src: `{{define "t"}}{{.x}}{{end}}{{template "t" .v}}{{template "t" .}}`, want: []string{"v", "x"}},
		{name: "of an expression", src: `{{(index .l 0).x}}`, want: []string{"l"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := ParseText("m", tt.src, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := tmpl.Fields(); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

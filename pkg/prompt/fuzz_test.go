package prompt_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/template"
	"toolctl.dev/toolctl/pkg/prompt"
)

// check renders a prompt and checks the guarantees of Render.
func check(t interface {
	Fatalf(format string, args ...any)
}, spec v1.PromptSpec, vars json.RawMessage, p *prompt.Prompt) {
	got, err := p.Render(context.Background(), vars)
	var invalid *v1.ValidationError
	switch {
	case err != nil && !errors.As(err, &invalid):
		t.Fatalf("%q with %s: error of type %T: %v", spec.Template, vars, err, err)
	case err != nil && (len(invalid.Violations) == 0 || invalid.Type != v1.ArgsInvalid):
		t.Fatalf("%q with %s: an error without errors: %v", spec.Template, vars, err)
	case err == nil && got == nil:
		t.Fatalf("%q with %s: neither messages nor an error", spec.Template, vars)
	}
	for _, m := range got {
		if len(m.Content) > template.MaxOutput || strings.TrimSpace(m.Content) == "" {
			t.Fatalf("%q with %s: a message of %d bytes", spec.Template, vars, len(m.Content))
		}
		if strings.Contains(m.Content, "<no value>") && !strings.Contains(spec.Template+spec.SystemPrompt+string(vars), "<") {
			t.Fatalf("%q with %s: rendered %q", spec.Template, vars, m.Content)
		}
	}
}

// FuzzRender checks that no template, schema or variable makes compiling or rendering panic, and that the output is
// bounded.
func FuzzRender(f *testing.F) {
	f.Add("{{.a}}", "", "", `{"a":1}`, false)
	f.Add("{{a}} {{b.c}}", "{{a}}", "", `{"a":"{{b}}","b":{"c":null}}`, true)
	f.Add("{{range .}}{{.}}{{end}}", "", `{"type":"array"}`, `[1,"2"]`, false)
	f.Add("{{upper .}}", "", `{"type":"string","minLength":2}`, `"x"`, false)
	f.Add("{{.city}}{{default 3 .days}}{{json .}}", "{{if .x}}y{{end}}", trip, `{"city":"Oslo","days":"5"}`, false)
	f.Add("{{define \"x\"}}{{template \"x\" .}}{{end}}{{template \"x\" .}}", "", "", `{}`, false)
	f.Add("{{range .l}}{{range $.l}}{{range $.l}}{{join \",\" $.l}}{{end}}{{end}}{{end}}", "", `{"properties":{"l":{"default":[1,2,3]}}}`, ``, false)
	f.Fuzz(func(t *testing.T, user, system, input, vars string, mustache bool) {
		if len(user)+len(system)+len(input)+len(vars) > 16<<10 {
			return
		}
		spec := v1.PromptSpec{Template: user, SystemPrompt: system, Input: json.RawMessage(input)}
		if mustache {
			spec.TemplateSyntax = prompt.SyntaxMustache
		}
		p, err := prompt.Compile(manifest(spec))
		if err != nil {
			var invalid *v1.ValidationError
			if !errors.As(err, &invalid) || len(invalid.Violations) == 0 {
				t.Fatalf("error of type %T: %v", err, err)
			}
			return
		}
		prompt.Check(manifest(spec))
		p.Arguments()
		p.Unused(json.RawMessage(vars))
		p.Complete("a", vars)
		check(t, spec, json.RawMessage(vars), p)
	})
}

// TestRenderProperties renders random combinations of template parts with random JSON. The result must be bounded
// messages or violations.
func TestRenderProperties(t *testing.T) {
	pieces := []string{"{{.a}}", "{{.b.c}}", "{{range .l}}{{.}},{{end}}", "{{if .a}}", "{{else}}", "{{end}}", "{{with .b}}{{.c}}{{end}}", "text ", "{{json .}}", "{{default 1 .a}}",
		`{{join ", " .l}}`, "{{upper .a}}", "{{trim .a}}", "{{index .l 0}}", "{{len .l}}", "{{printf \"%s\" .a}}", "{{$x := .a}}{{$x}}", "\n", "{{a}}", "{{/* c */}}", "{{slice .a 1}}"}
	rapid.Check(t, func(rt *rapid.T) {
		source := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8), func(p []string) string { return strings.Join(p, "") })
		spec := v1.PromptSpec{Template: source.Draw(rt, "template"), SystemPrompt: source.Draw(rt, "system"), TemplateSyntax: rapid.SampledFrom([]string{"", "go", "mustache"}).Draw(rt, "syntax")}
		if rapid.Bool().Draw(rt, "typed") {
			spec.Input = raw(`{"type":"object","properties":{"a":{"type":"string","default":"d"},"l":{"type":"array","items":{"type":"integer"}}},"required":["b"]}`)
		}
		p, err := prompt.Compile(manifest(spec))
		if err != nil {
			return
		}
		vars, err := json.Marshal(value(3).Draw(rt, "variables"))
		if err != nil {
			rt.Fatalf("%v", err)
		}
		check(rt, spec, vars, p)
	})
}

// value generates a JSON value whose objects have the keys of the templates.
func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 7
		if depth == 0 {
			kinds = 5
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.Int64().Draw(t, "int")
		case 3:
			return rapid.Float64Range(-1e300, 1e300).Draw(t, "float")
		case 4:
			return rapid.StringN(0, 8, 32).Draw(t, "string")
		case 5:
			return rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "list")
		}
		return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "l", "x"}), value(depth-1), 0, 4).Draw(t, "object")
	})
}

// TestRenderIsBounded checks that a template with endless output is stopped.
func TestRenderIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, src := range map[string]string{
		"output": "{{range .l}}{{range $.l}}{{range $.l}}{{$.s}}{{end}}{{end}}{{end}}",
		"steps":  "{{range .l}}{{range $.l}}{{range $.l}}{{range $.l}}{{end}}{{end}}{{end}}{{end}}",
	} {
		p := compile(t, v1.PromptSpec{Template: src})
		list := "[" + strings.TrimSuffix(strings.Repeat("1,", 200), ",") + "]"
		_, err := p.Render(t.Context(), raw(`{"s":"`+long+`","l":`+list+`}`))
		var invalid *v1.ValidationError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "spec.template: the ") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

package prompt_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/prompt"
)

func manifest(spec v1.PromptSpec) *v1.Prompt {
	p := v1.NewObject(v1.KindPrompt).(*v1.Prompt)
	p.Metadata.Name, p.Spec = "p", spec
	return p
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

const trip = `{"type":"object","properties":{"city":{"type":"string","minLength":1},"days":{"type":"integer","minimum":1,"default":3},"items":{"type":"array","items":{"type":"string"}}},"required":["city"],"additionalProperties":false}`

func TestRender(t *testing.T) {
	tests := []struct {
		name    string
		spec    v1.PromptSpec
		vars    string
		want    prompt.Messages
		wantErr []string // "path: message" of each violation
	}{
		{
			name: "both messages, a default of the schema, a coerced number",
			spec: v1.PromptSpec{SystemPrompt: "Know {{.city}}.\n", Template: "Pack for {{.days}} days in {{.city}}?", Input: raw(trip)},
			vars: `{"city":"Oslo"}`,
			want: prompt.Messages{{Role: "system", Content: "Know Oslo."}, {Role: "user", Content: "Pack for 3 days in Oslo?"}},
		},
		{
			name: "a text where an integer is asked for is coerced",
			spec: v1.PromptSpec{Template: "{{.days}}", Input: raw(trip)},
			vars: `{"city":"Oslo","days":"5"}`,
			want: prompt.Messages{{Role: "user", Content: "5"}},
		},
		{
			name:    "every error, from the schema and from the templates",
			spec:    v1.PromptSpec{SystemPrompt: "{{.who}}", Template: "{{.city}} {{.days}} {{.units}}", Input: raw(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}`)},
			vars:    `{"days":"many"}`,
			wantErr: []string{`/city: required property "city" is missing`, `/days: `, `/who: variable "who" is missing: spec.system_prompt needs it on line 1`, `/units: variable "units" is missing: spec.template needs it on line 1`},
		},
		{
			name:    "nothing is ever <no value>",
			spec:    v1.PromptSpec{Template: "a\n{{.a.b}}"},
			vars:    `{"a":{}}`,
			wantErr: []string{`: spec.template: line 2: .a.b: the value is missing: pass it, or use default or if in the template`},
		},
		{
			name: "the default of an argument goes before that of the schema",
			spec: v1.PromptSpec{Template: "{{.days}}", Input: raw(trip), Arguments: []v1.PromptArgument{{Name: "days", Default: raw("9")}}},
			vars: `{"city":"Oslo"}`,
			want: prompt.Messages{{Role: "user", Content: "9"}},
		},
		{
			name:    "a required argument without input",
			spec:    v1.PromptSpec{Template: "{{default 1 .a}}", Arguments: []v1.PromptArgument{{Name: "a", Required: true}, {Name: "b", Required: true}}},
			vars:    ``,
			wantErr: []string{`/a: required argument "a" is missing`, `/b: required argument "b" is missing`},
		},
		{
			name:    "a default that breaks input is no better than a value",
			spec:    v1.PromptSpec{Template: "{{.days}}", Input: raw(trip), Arguments: []v1.PromptArgument{{Name: "days", Default: raw("0")}}},
			vars:    `{"city":"Oslo"}`,
			wantErr: []string{`/days: `},
		},
		{
			name: "functions",
			spec: v1.PromptSpec{Template: `{{join ", " .l}}|{{upper .s}}|{{lower .s}}|{{trim .t}}|{{json .o}}|{{default "d" .absent}}`},
			vars: `{"l":["a","b"],"s":"aB","t":" x ","o":{"k":[1]}}`,
			want: prompt.Messages{{Role: "user", Content: `a, b|AB|ab|x|{"k":[1]}|d`}},
		},
		{
			name: "a string is the dot",
			spec: v1.PromptSpec{Template: "Translate: {{.}}", Input: raw(`{"type":"string"}`)},
			vars: `"hei"`,
			want: prompt.Messages{{Role: "user", Content: "Translate: hei"}},
		},
		{
			name: "an array is the dot",
			spec: v1.PromptSpec{Template: "{{range .}}[{{.}}]{{end}}", Input: raw(`{"type":"array","items":{"type":"integer"}}`)},
			vars: `[1,"2"]`,
			want: prompt.Messages{{Role: "user", Content: "[1][2]"}},
		},
		{
			name:    "a string where an array of objects is wanted",
			spec:    v1.PromptSpec{Template: "{{range .}}{{.}}{{end}}", Input: raw(`{"type":"array","items":{"type":"object"}}`)},
			vars:    `"x"`,
			wantErr: []string{`: `},
		},
		{
			name:    "no value for an input that is no object",
			spec:    v1.PromptSpec{Template: "{{.}}", Input: raw(`{"type":["string","array"]}`)},
			wantErr: []string{`: the prompt needs a string or an array: pass one`},
		},
		{
			name:    "a field of a string",
			spec:    v1.PromptSpec{Template: "{{.city}}", Input: raw(`{"type":"string"}`)},
			vars:    `"x"`,
			wantErr: []string{`: spec.template, line 1: reads .city of the variables, which are a string`},
		},
		{
			name:    "variables that are not valid JSON",
			spec:    v1.PromptSpec{Template: "x"},
			vars:    `{`,
			wantErr: []string{`: the variables are not JSON: `},
		},
		{
			name: "a message of space alone is left out",
			spec: v1.PromptSpec{SystemPrompt: "{{if .loud}}Shout.{{end}}\n", Template: "x"},
			want: prompt.Messages{{Role: "user", Content: "x"}},
		},
		{
			name: "nothing to render",
			want: prompt.Messages{},
		},
		{
			name: "mustache",
			spec: v1.PromptSpec{TemplateSyntax: "mustache", SystemPrompt: "{{ name }} of {{{user-co}}}, {{&n}}{{! never }} {{o.k}} {{note}}.{{ open", Arguments: []v1.PromptArgument{{Name: "note"}, {Name: "name", Default: raw(`"Ann"`)}}},
			vars: `{"user-co":"<T>","n":1.50,"o":{"k":[true]}}`,
			want: prompt.Messages{{Role: "system", Content: "Ann of <T>, 1.5 [true] .{{ open"}},
		},
		{
			name:    "mustache with missing variables",
			spec:    v1.PromptSpec{TemplateSyntax: "mustache", SystemPrompt: "{{a}}\n{{b}}{{a}}", Arguments: []v1.PromptArgument{{Name: "a", Required: true}}},
			vars:    `{}`,
			wantErr: []string{`/a: required argument "a" is missing`, `/b: variable "b" is missing: spec.system_prompt needs it on line 2`},
		},
		{
			name: "a value is not a template",
			spec: v1.PromptSpec{TemplateSyntax: "mustache", SystemPrompt: "{{a}}"},
			vars: `{"a":"{{b}}"}`,
			want: prompt.Messages{{Role: "system", Content: "{{b}}"}},
		},
		{
			name: "a long number keeps its digits",
			spec: v1.PromptSpec{Template: "{{.n}}", Input: raw(`{"type":"object"}`)},
			vars: `{"n":12345678901234567890}`,
			want: prompt.Messages{{Role: "user", Content: "12345678901234567890"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prompt.Compile(manifest(tt.spec))
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Render(t.Context(), raw(tt.vars))
			if tt.wantErr == nil {
				if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
					t.Errorf("error %v, messages (-want +got):\n%s", err, diff)
				}
				return
			}
			var invalid *v1.ValidationError
			if !errors.As(err, &invalid) || invalid.Type != v1.ArgsInvalid {
				t.Fatalf("error is %v, want a ValidationError of args_invalid", err)
			}
			var violations []string
			for _, f := range invalid.Violations {
				violations = append(violations, f.Path+": "+f.Message)
			}
			if len(violations) != len(tt.wantErr) || !slices.EqualFunc(violations, tt.wantErr, strings.HasPrefix) {
				t.Errorf("errors are\n%s\nwant\n%s", strings.Join(violations, "\n"), strings.Join(tt.wantErr, "\n"))
			}
		})
	}
}

func TestRenderEndsWithItsContext(t *testing.T) {
	p, err := prompt.Compile(manifest(v1.PromptSpec{Template: "{{.a}}"}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Render(ctx, raw(`{"a":1}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context canceled", err)
	}
}

func TestCompileViolations(t *testing.T) {
	_, err := prompt.Compile(manifest(v1.PromptSpec{
		SystemPrompt: "{{.a", Template: "line\n{{nofunc .a}}", Input: raw(`{"type":"objekt"}`), Output: raw(`{"$ref":"https://example.com/x"}`),
	}))
	var invalid *v1.ValidationError
	if !errors.As(err, &invalid) || invalid.Type != v1.ManifestInvalid {
		t.Fatalf("error is %v, want manifest_invalid", err)
	}
	var paths []string
	for _, f := range invalid.Violations {
		paths = append(paths, f.Path)
	}
	want := []string{"/spec/system_prompt", "/spec/template", "/spec/input/type", "/spec/output/$ref"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s\n%v", diff, err)
	}
	if msg := invalid.Violations[1].Message; msg != `line 2 of the template: function "nofunc" not defined; an argument is written {{.nofunc}}` {
		t.Errorf("message of the template is %q", msg)
	}
}

func TestCheckWarns(t *testing.T) {
	tests := []struct {
		name string
		spec v1.PromptSpec
		want []string
	}{
		{name: "a slip of the pen", spec: v1.PromptSpec{Template: "{{.ctiy}}", Input: raw(trip)},
			want: []string{`/spec/template: the template reads the variable "ctiy", which neither input nor arguments declare; did you mean "city"?`}},
		{name: "declared by an argument", spec: v1.PromptSpec{Template: "{{.a}}", Arguments: []v1.PromptArgument{{Name: "a"}}}},
		{name: "nothing is declared", spec: v1.PromptSpec{Template: "{{.a}}"}},
		{name: "fields of items are not variables", spec: v1.PromptSpec{Template: "{{range .items}}{{.name}}{{end}}{{with .city}}{{.x}}{{end}}", Input: raw(trip)}},
		{name: "an argument that a closed input refuses", spec: v1.PromptSpec{Template: "{{.city}}", Input: raw(trip), Arguments: []v1.PromptArgument{{Name: "city"}, {Name: "who"}}},
			want: []string{`/spec/arguments/1/name: input has no property "who" and additionalProperties: false, so the argument can never be given`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, f := range prompt.Check(manifest(tt.spec)) {
				if !f.IsWarning() {
					t.Errorf("not a warning: %s", f)
				}
				got = append(got, f.Path+": "+f.Message)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

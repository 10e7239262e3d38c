package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/template"
	"toolctl.dev/toolctl/pkg/validate"
)

// Values of template_syntax.
const (
	SyntaxGo       = "go"
	SyntaxMustache = "mustache"
)

// Prompt is a compiled manifest. It is safe for concurrent use.
type Prompt struct {
	object        *v1.Prompt
	user, system  *template.Text // nil if the manifest has no such template
	input, output *validate.Schema
	in            outline
	validators    []*validator
	warnings      []v1.Violation // about validators that are not applied
}

// Compile compiles the templates and schemas of a manifest, which must not change afterwards.
// Its error is a [*v1.ValidationError] of the type manifest_invalid with all violations and
// their places; [Check] adds warnings. Compile does not repeat [v1.Prompt.Validate].
func Compile(m *v1.Prompt) (*Prompt, error) {
	p := &Prompt{object: m, in: readOutline(m.Spec.Input)}
	violations := p.compile()
	if len(violations) == 0 {
		return p, nil
	}
	return nil, v1.NewValidationError(v1.ManifestInvalid, "", violations)
}

// Object returns the manifest.
func (p *Prompt) Object() *v1.Prompt { return p.object }

func (p *Prompt) compile() []v1.Violation {
	var violations []v1.Violation
	s := &p.object.Spec
	read := func(path, src string) *template.Text {
		if src == "" {
			return nil
		}
		parse := template.ParseText
		if s.TemplateSyntax == SyntaxMustache {
			parse = template.ParseMustache
		}
		t, err := parse(v1.FieldPath(path), src, template.Options{Whole: p.isVariable})
		if err != nil {
			violations = append(violations, p.place(templateViolation(path, err)))
		}
		return t
	}
	p.system, p.user = read(pathSystem, s.SystemPrompt), read(pathTemplate, s.Template)

	schemas := validate.NewCache(validate.Options{})
	compile := func(path string, raw json.RawMessage) *validate.Schema {
		if len(raw) == 0 {
			return nil
		}
		draft := validate.Draft2020
		if p.object.FromPromptKit() {
			draft = validate.Draft7
		}
		schema := schemas.Schema(raw, draft)
		if err := schema.Compile(); err != nil {
			violations = append(violations, p.schemaViolations(path, err)...)
		}
		return schema
	}
	p.input, p.output = compile(pathInput, s.Input), compile(pathOutput, s.Output)
	for _, f := range p.compileValidators(schemas) {
		if f.IsWarning() {
			p.warnings = append(p.warnings, f)
		} else {
			violations = append(violations, f)
		}
	}
	return violations
}

// isVariable reports whether a name with dots is one variable. In PromptKit manifests it always is.
func (p *Prompt) isVariable(name string) bool {
	return p.object.FromPromptKit() || slices.ContainsFunc(p.object.Spec.Arguments, func(a v1.PromptArgument) bool { return a.Name == name })
}

const (
	pathTemplate = "/spec/template"
	pathSystem   = "/spec/system_prompt"
	pathInput    = "/spec/input"
	pathOutput   = "/spec/output"
)

// place sets the place of a violation in its file.
func (p *Prompt) place(f v1.Violation) v1.Violation {
	if f.Source.IsZero() {
		f.Source = p.object.Field(f.Path)
	}
	return f
}

func templateViolation(path string, err error) v1.Violation {
	f := v1.Violation{Path: path, Expected: "a template that can be read", Got: "a faulty one", Message: err.Error()}
	if own, ok := errors.AsType[*template.Error](err); ok {
		if f.Message = own.Message; own.Line > 0 {
			f.Message = fmt.Sprintf("line %d of the template: %s", own.Line, own.Message)
		}
	}
	return f
}

func (p *Prompt) schemaViolations(path string, err error) []v1.Violation {
	var invalid *v1.ValidationError
	if !errors.As(err, &invalid) {
		return []v1.Violation{p.place(v1.Violation{Path: path, Expected: "a JSON Schema", Got: "something else", Message: err.Error()})}
	}
	violations := make([]v1.Violation, len(invalid.Violations))
	for i, f := range invalid.Violations {
		f.Path = path + f.Path
		violations[i] = p.place(f)
	}
	return violations
}

// Variables returns the sorted names of the variables that the templates read.
func (p *Prompt) Variables() []string {
	var names []string
	for _, t := range []*template.Text{p.user, p.system} {
		if t != nil {
			names = append(names, t.Fields()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// NamesTool reports whether spec.tools names a tool, by its name or a pattern.
func (p *Prompt) NamesTool(name string) bool {
	return slices.ContainsFunc(p.object.Spec.Tools, func(t string) bool { return v1.MatchTool(t, name) })
}

// CheckOutput returns the violations of spec.output in an answer.
func (p *Prompt) CheckOutput(answer json.RawMessage) []v1.Violation {
	if p.output == nil {
		return nil
	}
	violations, err := p.output.ValidateJSON(answer)
	if err != nil {
		return []v1.Violation{{Expected: "a usable spec.output", Got: "a faulty one", Message: err.Error()}}
	}
	return violations
}

// Roles of a [Message].
const (
	RoleSystem = "system"
	RoleUser   = "user"
)

// Message is one rendered message.
type Message struct {
	// Role is "system" or "user".
	Role string `json:"role"`
	// Content is the text.
	Content string `json:"content"`
}

// Messages are the rendered messages. The one with the role system comes first.
type Messages []Message

// System returns the text of the system message; "" if there is no system message.
func (m Messages) System() string { return m.text(RoleSystem) }

// User returns the text of the user message; "" if there is no user message.
func (m Messages) User() string { return m.text(RoleUser) }

func (m Messages) text(role string) string {
	for _, one := range m {
		if one.Role == role {
			return one.Content
		}
	}
	return ""
}

// Render renders the templates. vars is a JSON value: an object of variables, or the value that
// spec.input describes. Empty vars count as an empty object if spec.input allows one. The error
// is a [*v1.ValidationError] of the type args_invalid, whose violations have JSON pointers into
// vars, or the error of ctx. Templates are stopped after 10 seconds.
func (p *Prompt) Render(ctx context.Context, vars json.RawMessage) (Messages, error) {
	doc, violations := p.variables(vars)
	messages, more, err := p.render(ctx, doc, violations)
	if err != nil {
		return nil, err
	}
	if violations = merge(violations, more); len(violations) > 0 {
		return nil, v1.NewValidationError(v1.ArgsInvalid, "", violations)
	}
	return messages, nil
}

// merge adds violations at paths that have no violations yet.
func merge(violations, more []v1.Violation) []v1.Violation {
	for _, f := range more {
		if f.Path == "" && len(violations) > 0 {
			continue // the violation may be a consequence of the others
		}
		if !slices.ContainsFunc(violations, func(old v1.Violation) bool { return old.Path == f.Path }) {
			violations = append(violations, f)
		}
	}
	return violations
}

package prompt

import (
	"errors"
	"fmt"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Check returns the violations of [Compile], and warnings of likely mistakes: a template that
// reads an undeclared variable, and an argument that spec.input does not allow.
func Check(m *v1.Prompt) []v1.Violation {
	p, err := Compile(m)
	var invalid *v1.ValidationError
	switch {
	case errors.As(err, &invalid):
		return invalid.Violations
	case err != nil:
		return []v1.Violation{{Message: err.Error()}}
	}
	return slices.Concat(p.undeclared(), p.impossible(), p.warnings)
}

// undeclared warns of undeclared variables in the templates, unless the prompt declares no variables at all.
func (p *Prompt) undeclared() []v1.Violation {
	s := &p.object.Spec
	declared := slices.Clone(p.in.order)
	for _, a := range s.Arguments {
		declared = append(declared, a.Name)
	}
	if len(declared) == 0 || !p.in.takesObject() {
		return nil
	}
	var violations []v1.Violation
	for _, part := range []struct {
		path  string
		names []string
	}{{pathSystem, p.systemFields()}, {pathTemplate, p.userFields()}} {
		for _, name := range part.names {
			if slices.Contains(declared, name) {
				continue
			}
			msg := fmt.Sprintf("the template reads the variable %q, which neither input nor arguments declare", name)
			msg += v1.DidYouMean(name, declared)
			violations = append(violations, p.place(v1.Violation{Severity: v1.SeverityWarning, Path: part.path, Expected: "a declared variable", Got: name, Message: msg}))
		}
	}
	return violations
}

// impossible warns of arguments that a closed input refuses.
func (p *Prompt) impossible() []v1.Violation {
	if !p.in.closed {
		return nil
	}
	var violations []v1.Violation
	for i, a := range p.object.Spec.Arguments {
		if _, ok := p.in.properties[a.Name]; !ok {
			violations = append(violations, p.place(v1.Violation{Severity: v1.SeverityWarning, Path: v1.Pointer("/spec/arguments", fmt.Sprint(i), "name"), Expected: "a property of input", Got: a.Name,
				Message: fmt.Sprintf("input has no property %q and additionalProperties: false, so the argument can never be given", a.Name)}))
		}
	}
	return violations
}

func (p *Prompt) systemFields() []string {
	if p.system == nil {
		return nil
	}
	return p.system.Fields()
}

func (p *Prompt) userFields() []string {
	if p.user == nil {
		return nil
	}
	return p.user.Fields()
}

package prompt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/template"
)

// Bounds of one rendering, in addition to those of a template.
const (
	maxMissing = 20 // maximum number of missing variables in an error
	maxTime    = 10 * time.Second
)

var errTime = fmt.Errorf("the templates take more than %s", maxTime)

// render renders both templates. It treats variables with known violations as present, so that
// one rendering also reports the missing ones.
func (p *Prompt) render(ctx context.Context, doc any, known []v1.Violation) (Messages, []v1.Violation, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, errTime)
	defer cancel()
	vars, isObject := doc.(map[string]any)
	if isObject {
		vars = maps.Clone(vars)
		if p.object.Spec.TemplateSyntax == SyntaxMustache {
			p.blankOptional(vars)
		}
		doc = vars
	} else if len(known) > 0 {
		return nil, nil, nil // templates cannot use a value of the wrong type
	}
	messages := Messages{}
	var violations []v1.Violation
	for _, part := range []struct {
		role string
		tmpl *template.Text
	}{{RoleSystem, p.system}, {RoleUser, p.user}} {
		if part.tmpl == nil {
			continue
		}
		text, err := part.tmpl.RenderValue(ctx, doc)
		for ; err != nil && len(violations) < maxMissing; text, err = part.tmpl.RenderValue(ctx, doc) {
			if ctx.Err() != nil {
				return nil, nil, context.Cause(ctx)
			}
			f, name := renderViolation(err, doc)
			violations = append(violations, f)
			if name == "" || !isObject {
				break
			}
			vars[name] = "" // continue, to find other missing variables
		}
		if err == nil && strings.TrimSpace(text) != "" {
			messages = append(messages, Message{part.role, strings.TrimSpace(text)})
		}
	}
	return messages, violations, nil
}

// blankOptional sets absent optional arguments to an empty text, because mustache templates
// cannot test whether a variable exists.
func (p *Prompt) blankOptional(vars map[string]any) {
	for _, a := range p.object.Spec.Arguments {
		if _, given := vars[a.Name]; !given && !a.Required {
			vars[a.Name] = ""
		}
	}
}

// renderViolation returns the violation for the error of a rendering, and the name of the missing
// variable if that is the cause.
func renderViolation(err error, doc any) (v1.Violation, string) {
	var own *template.Error
	if !errors.As(err, &own) {
		return v1.Violation{Expected: "variables that fit the template", Got: "others", Message: err.Error()}, ""
	}
	if own.Missing == "" {
		return v1.Violation{Expected: "variables that fit the template", Got: "others", Message: own.Error()}, ""
	}
	if _, isObject := doc.(map[string]any); !isObject {
		got := kindOf(doc)
		return v1.Violation{Expected: "an object", Got: got, Message: fmt.Sprintf("%s, line %d: reads .%s of the variables, which are %s", own.Name, own.Line, own.Missing, got)}, ""
	}
	return v1.Violation{Path: v1.Pointer("", own.Missing), Expected: "a value", Got: "nothing",
		Message: fmt.Sprintf("variable %q is missing: %s needs it on line %d", own.Missing, own.Name, own.Line)}, own.Missing
}

func kindOf(doc any) string {
	switch doc.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

package prompt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/template"
)

// Bounds of one rendering, besides those of a template.
const (
	maxMissing = 20 // missing variables that are looked for
	maxTime    = 10 * time.Second
)

var errTime = fmt.Errorf("the templates take more than %s", maxTime)

// render renders both templates. Variables that have a fault already are taken as
// given, so that one rendering reports those that are missing as well.
func (p *Prompt) render(ctx context.Context, doc any, known []v1.Fault) (Messages, []v1.Fault, error) {
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
		return nil, nil, nil // nothing can be said of a value that is of the wrong kind
	}
	messages := Messages{}
	var faults []v1.Fault
	for _, part := range []struct {
		role string
		tmpl *template.Text
	}{{RoleSystem, p.system}, {RoleUser, p.user}} {
		if part.tmpl == nil {
			continue
		}
		text, err := part.tmpl.RenderValue(ctx, doc)
		for ; err != nil && len(faults) < maxMissing; text, err = part.tmpl.RenderValue(ctx, doc) {
			if ctx.Err() != nil {
				return nil, nil, context.Cause(ctx)
			}
			f, name := renderFault(err, doc)
			faults = append(faults, f)
			if name == "" || !isObject {
				break
			}
			vars[name] = "" // to see what else is missing
		}
		if err == nil && strings.TrimSpace(text) != "" {
			messages = append(messages, Message{part.role, strings.TrimSpace(text)})
		}
	}
	return messages, faults, nil
}

// blankOptional gives the optional arguments that are absent an empty text: mustache
// has no way to ask whether a variable is there.
func (p *Prompt) blankOptional(vars map[string]any) {
	for _, a := range p.object.Spec.Arguments {
		if _, given := vars[a.Name]; !given && !a.Required {
			vars[a.Name] = ""
		}
	}
}

// renderFault says what a rendering ended with, and the variable that is missing if
// that is why.
func renderFault(err error, doc any) (v1.Fault, string) {
	var own *template.Error
	if !errors.As(err, &own) {
		return v1.Fault{Expected: "variables that fit the template", Got: "others", Message: err.Error()}, ""
	}
	if own.Missing == "" {
		return v1.Fault{Expected: "variables that fit the template", Got: "others", Message: own.Error()}, ""
	}
	if _, isObject := doc.(map[string]any); !isObject {
		got := kindOf(doc)
		return v1.Fault{Expected: "an object", Got: got, Message: fmt.Sprintf("%s, line %d: reads .%s of the variables, which are %s", own.Name, own.Line, own.Missing, got)}, ""
	}
	return v1.Fault{Path: v1.Pointer("", own.Missing), Expected: "a value", Got: "nothing",
		Message: fmt.Sprintf("variable %q is missing: %s needs it in line %d", own.Missing, own.Name, own.Line)}, own.Missing
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

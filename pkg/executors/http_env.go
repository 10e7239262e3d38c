package executors

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/envref"
)

// envVar is a reference to a variable in a manifest.
type envVar struct {
	envref.Ref
	path   string // JSON pointer of the field
	secret bool   // its value is masked in all output
	named  bool   // a field such as bearer_env names the variable, rather than ${}
}

// text reads a text of a manifest and records its variables: ${VAR} and
// ${VAR:-default}. $${ is a literal ${. In a template, variables inside {{ }} are refused.
func (p *httpTool) text(path, s string, secret bool) envText {
	pieces, err := envref.Parse(s)
	if err != nil {
		p.violation(path, "${VAR} or ${VAR:-default}", quoted(s), err.Error())
		return ""
	}
	if strings.Contains(s, mark) {
		p.violation(path, "text without control characters", quoted(s), "the text must not contain the control character U+0001")
		return ""
	}
	var t envText
	for _, piece := range pieces {
		if piece.Ref == nil {
			t += envText(piece.Text)
			continue
		}
		if strings.LastIndex(string(t), "{{") > strings.LastIndex(string(t), "}}") {
			p.violation(path, "${VAR} or ${VAR:-default}", quoted(s), piece.Text+" is inside {{ }}: put it outside")
			return ""
		}
		t += p.variable(envVar{Ref: *piece.Ref, path: path, secret: secret})
	}
	return t
}

// variable records a variable and returns its placeholder.
func (p *httpTool) variable(v envVar) envText {
	p.vars = append(p.vars, v)
	return place(len(p.vars))
}

// checkReadable refuses variables in ${} that headers_from_env does not list, if it lists any.
func (p *httpTool) checkReadable(list []string) {
	bare := false
	var may []string
	for i, entry := range list {
		path := v1.Pointer("/spec/http/headers_from_env", strconv.Itoa(i))
		header, name, isHeader := strings.Cut(entry, "=")
		if !isHeader {
			name, bare = entry, true
		}
		may = append(may, name)
		if !envref.IsName(name) {
			p.violation(path, "Header=VAR or VAR", quoted(entry), fmt.Sprintf("%q is not the name of a variable: expected Header=VAR or VAR", name))
		} else if isHeader {
			p.header(path, header, p.variable(envVar{Ref: envref.Ref{Name: name}, path: path, secret: true, named: true}), nil)
		}
	}
	for _, v := range p.vars {
		if bare && !v.named && !slices.Contains(may, v.Name) {
			p.violation(v.path, "a variable of spec.http.headers_from_env", "${"+v.Name+"}",
				fmt.Sprintf("environment variable %q may not be read: spec.http.headers_from_env does not list it", v.Name))
		}
	}
}

// resolve looks up the variables. A variable without a value and a default is a violation. So is an empty variable
// that a field names.
func (p *httpTool) resolve(env envref.Env) ([]string, []v1.Violation) {
	if len(p.vars) == 0 {
		return nil, nil
	}
	values := make([]string, len(p.vars))
	var violations []v1.Violation
	for i, v := range p.vars {
		value, _, ok := v.Value(env)
		if !ok || v.named && value == "" {
			violations = append(violations, envref.Unset(v.path, v.Name))
		}
		values[i] = value
	}
	return values, violations
}

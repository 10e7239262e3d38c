package executors

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/envref"
)

// A text of a manifest that may hold ${VAR} is kept with a mark in place of each
// variable, and the marks are replaced when a call is made. So a text is parsed
// once, no argument is ever read as ${VAR}, and a plan can be printed without the
// values. The marks are noncharacters of Unicode, which no valid text needs.
const (
	markOpen  = "\uFDD0"
	markClose = "\uFDD1"
)

// envVar is one place where a manifest reads a variable.
type envVar struct {
	envref.Ref
	path   string // JSON pointer of the field
	secret bool   // its value is masked wherever it shows
	named  bool   // by a field of its own, such as bearer_env, and not by ${}
}

// mark replaces each ${VAR} and ${VAR:-default} of a text and remembers it. $${ is
// ${ as it is. In a template a variable may not stand inside {{ }}.
func (p *httpTool) mark(path, s string, secret bool) string {
	if strings.Contains(s, markOpen) || strings.Contains(s, markClose) {
		p.violation(path, "text", "the characters U+FDD0 or U+FDD1", "the noncharacters U+FDD0 and U+FDD1 cannot be sent")
		return ""
	}
	if !strings.Contains(s, "${") {
		return s
	}
	pieces, err := envref.Parse(s)
	if err != nil {
		p.violation(path, "${VAR} or ${VAR:-default}", quoted(s), err.Error())
		return ""
	}
	var b strings.Builder
	for _, piece := range pieces {
		if piece.Ref == nil {
			b.WriteString(piece.Text)
			continue
		}
		if strings.LastIndex(b.String(), "{{") > strings.LastIndex(b.String(), "}}") {
			p.violation(path, "${VAR} or ${VAR:-default}", quoted(s), piece.Text+" stands inside {{ }}: put it outside")
			return ""
		}
		b.WriteString(p.variable(envVar{Ref: *piece.Ref, path: path, secret: secret}))
	}
	return b.String()
}

// variable remembers a variable and returns its mark.
func (p *httpTool) variable(v envVar) string {
	p.vars = append(p.vars, v)
	return markOpen + strconv.Itoa(len(p.vars)-1) + markClose
}

// checkReadable holds the variables in ${} to the list in headers_from_env, when there is one.
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

// resolve looks the variables up. What is not set and has no default is a violation, and
// so is an empty one that a field names.
func (p *httpTool) resolve(env func(string) (string, bool)) ([]string, []v1.Violation) {
	if len(p.vars) == 0 {
		return nil, nil
	}
	values := make([]string, len(p.vars))
	var violations []v1.Violation
	for i, v := range p.vars {
		value, _, ok := v.Value(env)
		if !ok || v.named && value == "" {
			violations = append(violations, v1.Violation{Path: v.path, Expected: "environment variable " + v.Name, Got: "nothing",
				Message: fmt.Sprintf("environment variable %q is not set", v.Name)})
		}
		values[i] = value
	}
	return values, violations
}

// substitute puts values in place of marks. escape fits a value into its place;
// out is what stands before it.
func substitute(text string, values []string, escape func(out, value string) string) string {
	if !strings.Contains(text, markOpen) {
		return text
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, markOpen)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		index, after, _ := strings.Cut(rest, markClose)
		if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(values) {
			b.WriteString(escape(b.String(), values[i]))
		}
		text = after
	}
}

func asIs(_, value string) string { return value }

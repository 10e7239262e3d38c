package registry

import (
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/prompt"
)

// checkPrompt compiles the templates and schemas of a prompt and checks that the tools that it names exist.
func (s *snapshot) checkPrompt(p *v1.Prompt) []v1.Violation {
	return append(prompt.Check(p), s.unknownTools(p)...)
}

// unknownTools returns warnings for entries in spec.tools that match no tool. It returns nothing in a namespace with
// MCP servers, because their tools are not known before discovery.
func (s *snapshot) unknownTools(p *v1.Prompt) []v1.Violation {
	if len(p.Spec.Tools) == 0 || s.hasServer(p.Namespace()) {
		return nil
	}
	var names []string // a prompt can be called as a tool
	for _, o := range s.objects {
		if h := o.Head(); h.Kind == v1.KindTool || h.Kind == v1.KindPrompt {
			names = append(names, h.Metadata.Name)
		}
	}
	var violations []v1.Violation
	for i, want := range p.Spec.Tools {
		local := want[strings.LastIndexByte(want, '/')+1:]
		if star := strings.IndexByte(want, '*'); star >= 0 && star < len(want)-1 {
			continue // an invalid pattern was reported before
		}
		if slices.ContainsFunc(names, func(n string) bool { return v1.MatchTool(local, n) }) {
			continue
		}
		if _, err := s.lookup(p.Namespace(), want); err == nil {
			continue
		}
		msg := fmt.Sprintf("%q matches no tool here", want)
		msg += v1.DidYouMean(strings.TrimSuffix(local, "*"), names)
		violations = append(violations, v1.Violation{Severity: v1.SeverityWarning, Path: v1.Pointer("/spec/tools", fmt.Sprint(i)), Expected: "a tool, or a pattern that matches tools", Got: fmt.Sprintf("%q", want), Message: msg})
	}
	return violations
}

package search

import (
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

// Contains reports whether an object is in a toolset. The subject is a Tool, a Prompt or one of an MCP server, in the
// form in which policies know it. The kind is [v1.KindTool], [v1.KindPrompt], or [v1.KindMCPServer] for the resources of
// a server, whose subject has the fields Namespace, Server and ServerLabels only.
//
// Names select as those of an allowlist: a server that chooses the name of a tool cannot bring it in by a pattern for the
// tools of others. Exclusions compare every name that the object may have, as a blocklist does.
func Contains(s *v1.Toolset, kind string, o policy.Subject) bool {
	own := s.Namespace()
	in := s.Spec.Include == nil && o.Namespace == own ||
		slices.ContainsFunc(s.Spec.Include, func(m v1.ToolsetMatch) bool { return Includes(own, &m, kind, o) })
	return in && !slices.ContainsFunc(s.Spec.Exclude, func(m v1.ToolsetMatch) bool { return Excludes(own, &m, kind, o) })
}

// Includes reports whether an entry of include of a toolset in the namespace own matches an object.
func Includes(own string, m *v1.ToolsetMatch, kind string, o policy.Subject) bool {
	return matches(own, m, kind, o, o.Allowed)
}

// Excludes reports whether an entry of exclude of a toolset in the namespace own matches an object.
func Excludes(own string, m *v1.ToolsetMatch, kind string, o policy.Subject) bool {
	return matches(own, m, kind, o, o.Refused)
}

// Pins reports whether clients of the toolset always see the tool. It also returns true for tools that are not in the
// toolset.
func Pins(s *v1.Toolset, tool policy.Subject) bool {
	return tool.Allowed(about(s.Namespace(), tool.Namespace, s.Spec.Pinned))
}

// matches reports whether an object matches an entry of a toolset in the namespace own. The function named says whether
// the object has one of the names.
func matches(own string, m *v1.ToolsetMatch, kind string, o policy.Subject, named func([]string) bool) bool {
	names, others := m.Tools, m.Prompts
	switch kind {
	case v1.KindPrompt:
		names, others = m.Prompts, m.Tools
	case v1.KindMCPServer:
		names, others = nil, slices.Concat(m.Tools, m.Prompts)
	}
	switch {
	case len(names) > 0:
		if !named(about(own, o.Namespace, names)) {
			return false
		}
	case len(others) > 0, len(m.Servers)+len(m.Labels) == 0:
		return false
	}
	if len(m.Servers) > 0 {
		fits := func(p string) bool {
			return v1.MatchPattern(p, o.Server) || v1.MatchPattern(p, o.Namespace+"/"+o.Server)
		}
		if o.Server == "" || !slices.ContainsFunc(about(own, o.Namespace, m.Servers), fits) {
			return false
		}
	}
	if len(names)+len(m.Servers) == 0 && o.Namespace != own {
		return false
	}
	return o.HasLabels(m.Labels)
}

// about returns the patterns of a toolset in the namespace own that can match names in another namespace.
func about(own, namespace string, patterns []string) []string {
	if own == namespace {
		return patterns
	}
	var full []string
	for _, p := range patterns {
		if strings.HasPrefix(p, namespace+"/") {
			full = append(full, p)
		}
	}
	return full
}

package lint

import (
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
)

// unguarded finds tools with the hint destructive. Unlike MCP, it does not treat tools without the
// hint as destructive.
func unguarded(s *surface, found func(Finding)) {
	for _, t := range s.tools {
		if t.manifest == nil || t.manifest.Spec.Hints == nil || t.chain.Guards() {
			continue
		}
		h, c := t.manifest.Spec.Hints, t.manifest.Spec.Client
		if h.Destructive != nil && *h.Destructive && !(c != nil && c.Consent != nil && c.Consent.Required) {
			found(t.at("/spec/hints/destructive", "no policy asks for approval of its calls, limits or refuses them"))
		}
	}
}

// pattern is one entry of a list of names in a policy.
type pattern struct {
	text, path string
	// decides reports that the entry has an effect, which an earlier rule can shadow.
	decides bool
}

func patterns(p *v1.ToolPolicy) [][]pattern {
	var all [][]pattern
	add := func(path string, names []string, decides bool) {
		var of []pattern
		for i, n := range names {
			of = append(of, pattern{n, v1.Pointer(path, strconv.Itoa(i)), decides})
		}
		all = append(all, of)
	}
	add("/spec/blocklist", p.Spec.Blocklist, false)
	add("/spec/allowlist", p.Spec.Allowlist, true)
	add("/spec/require_approval", p.Spec.RequireApproval, true)
	for i, l := range p.Spec.Limits {
		add(v1.Pointer("/spec/limits", strconv.Itoa(i), "tools"), l.Tools, true)
	}
	if p.Spec.Match != nil {
		add("/spec/match/tools", p.Spec.Match.Tools, false)
	}
	return all
}

// fitting returns the tools in the policy's namespace that a pattern matches.
func (s *surface) fitting(p *v1.ToolPolicy, text string) []*tool {
	var fit []*tool
	for _, t := range s.tools {
		if t.subject.Namespace == p.Namespace() && slices.ContainsFunc(t.names, func(n string) bool { return v1.MatchTool(text, n) }) {
			fit = append(fit, t)
		}
	}
	return fit
}

func rulesWithoutTool(s *surface, found func(Finding)) {
	for _, p := range s.policies {
		if s.open[p.Namespace()] {
			continue // a server with unknown tools may have a matching tool
		}
		var known []string
		for _, t := range s.tools {
			if t.subject.Namespace == p.Namespace() {
				known = append(known, t.name)
			}
		}
		for _, names := range patterns(p) {
			for _, n := range names {
				if n.text == "*" || len(s.fitting(p, n.text)) > 0 {
					continue
				}
				f := at(p.Head(), n.path, "no tool in namespace %s matches %q", p.Namespace(), n.text)
				if near := v1.Nearest(n.text, known); near != "" {
					f.Message += "; did you mean " + strconv.Quote(near) + "?"
				}
				found(f)
			}
		}
	}
}

func shadowedRules(s *surface, found func(Finding)) {
	for _, p := range s.policies {
		for _, names := range patterns(p) {
			for i, n := range names {
				if j := slices.IndexFunc(names[:i], func(o pattern) bool { return covers(o.text, n.text) }); j >= 0 {
					found(at(p.Head(), n.path, "%q comes first and matches everything that %q matches", names[j].text, n.text))
				} else if blocker := s.blocker(p, n); blocker != "" {
					found(at(p.Head(), n.path, "%s refuses every call of the tools that %q matches", blocker, n.text))
				}
			}
		}
	}
}

// covers reports whether a pattern matches every name that another pattern matches.
func covers(wide, narrow string) bool {
	return wide == narrow || wide[len(wide)-1] == '*' && v1.MatchPattern(wide, narrow)
}

// blocker returns the earlier rule that refuses every call of the tools that an entry matches, or
// "".
func (s *surface) blocker(p *v1.ToolPolicy, n pattern) string {
	if !n.decides || s.open[p.Namespace()] {
		return ""
	}
	first := ""
	for _, t := range s.fitting(p, n.text) {
		blocked := t.chain.Blocked()
		if blocked == nil {
			return ""
		}
		first = "the rule " + blocked.Rule + " of policy " + blocked.Policy
	}
	return first
}

package policy

import (
	"cmp"
	"reflect"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Same reports whether two policies have the same rules, apart from their order and from explicit defaults, so that no
// call can get a different decision. It may return false for policies that are equivalent for other reasons.
func Same(before, after *v1.ToolPolicySpec) bool {
	return reflect.DeepEqual(plain(before), plain(after))
}

// plain returns rules in a canonical form, without the names of limits, which affect only counts: see
// [Abandoned].
func plain(s *v1.ToolPolicySpec) v1.ToolPolicySpec {
	p := *s
	p.ToolChoice = cmp.Or(p.ToolChoice, v1.ToolChoiceAuto)
	p.Mode = cmp.Or(p.Mode, v1.PolicyEnforce)
	p.ApprovalTimeoutMS = cmp.Or(p.ApprovalTimeoutMS, v1.DefaultApprovalTimeoutMS)
	p.Blocklist, p.RequireApproval = least(p.Blocklist), least(p.RequireApproval)
	if p.Allowlist != nil {
		p.Allowlist = append([]string{}, least(p.Allowlist)...) // an empty allowlist allows no tools
	}
	if len(p.RequireApproval) == 0 {
		p.ApprovalTimeoutMS, p.Approvers = 0, nil
	}
	if p.Approvers != nil {
		a := *p.Approvers
		a.Principals, a.Groups = least(a.Principals), slices.Compact(slices.Sorted(slices.Values(a.Groups)))
		p.Approvers = &a
	}
	p.Limits = nil
	for _, l := range s.Limits {
		l.Name, l.Tools = "", least(l.Tools)
		l.By = slices.Compact(slices.Sorted(slices.Values(l.By)))
		p.Limits = append(p.Limits, l)
	}
	slices.SortStableFunc(p.Limits, func(a, b v1.Limit) int {
		return cmp.Or(slices.Compare(a.Tools, b.Tools), cmp.Compare(a.Per, b.Per), slices.Compare(a.By, b.By), cmp.Compare(deref(a.MaxCalls), deref(b.MaxCalls)))
	})
	if p.Match != nil {
		m := *p.Match
		m.Tools, m.Principals = least(m.Tools), least(m.Principals)
		p.Match = &m
		if len(m.Labels)+len(m.Tools)+len(m.Principals) == 0 {
			p.Match = nil
		}
	}
	return p
}

func deref(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// least sorts patterns and removes those that another pattern covers. It returns nil if there are no patterns.
func least(patterns []string) []string {
	sorted := slices.Compact(slices.Sorted(slices.Values(patterns)))
	var out []string
	for _, p := range sorted {
		if !slices.ContainsFunc(sorted, func(by string) bool { return by != p && v1.MatchPattern(by, p) }) {
			out = append(out, p)
		}
	}
	return out
}

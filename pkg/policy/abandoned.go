package policy

import (
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Abandoned returns a sentence for each count of a policy that an edit discards. If after is nil, the policy is
// removed; if before is nil, the policy is new, and the edit discards nothing.
func Abandoned(before, after *v1.ToolPolicy) []string {
	if before == nil {
		return nil
	}
	kept := map[string]bool{}
	if after != nil {
		for _, r := range counting(after) {
			kept[r.key] = true
		}
	}
	var gone []string
	seen := map[string]bool{}
	for _, r := range counting(before) {
		if kept[r.key] || seen[r.key] {
			continue
		}
		seen[r.key] = true
		what := r.name
		if r.count.name != "" {
			what += fmt.Sprintf(" %q", r.count.name)
		}
		gone = append(gone, fmt.Sprintf("the count of %s (%s %s) is discarded: no limit continues it", what, r.count.noun(0), r.count.span()))
	}
	return gone
}

// counting returns the rules of a policy that count.
func counting(p *v1.ToolPolicy) []*rule {
	var rules []*rule
	for _, r := range Compile([]*v1.ToolPolicy{p}).rules[p.Namespace()] {
		if r.count != nil {
			rules = append(rules, r)
		}
	}
	return rules
}

package policy

import (
	"fmt"
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
)

// limits is spec.limits: each bounds the calls of some tools, counted together,
// in a span.
func limits(s *v1.ToolPolicySpec) []*rule {
	var rules []*rule
	for i, l := range s.Limits {
		r := &rule{field: v1.Pointer("/spec/limits", strconv.Itoa(i))}
		if l.MaxCalls == nil || !slices.Contains(spans(), l.Per) {
			// A reader of manifests does not let this through. To count nothing would
			// be no limit at all, so the calls are refused.
			r.judge = func(tool string) (bool, string) {
				if len(l.Tools) > 0 && firstFit(l.Tools, tool) == "" {
					return true, fmt.Sprintf("it counts calls of %s only", list(l.Tools))
				}
				return false, "the limit is broken: expected max_calls, and per to be turn, session, minute, hour or day"
			}
		} else {
			r.count = newCount(*l.MaxCalls, l.Per, l.Tools)
		}
		rules = append(rules, r)
	}
	return rules
}

package policy

import (
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
)

// allowlist is spec.allowlist: it refuses the tools that fit none of its
// patterns. A list that is there and empty allows none.
func allowlist(s *v1.ToolPolicySpec) []*rule {
	if s.Allowlist == nil {
		return nil
	}
	return []*rule{{field: "/spec/allowlist", judge: func(tool string) (bool, string) {
		if p := firstFit(s.Allowlist, tool); p != "" {
			return true, fmt.Sprintf("the allowlist has %q", p)
		}
		if len(s.Allowlist) == 0 {
			return false, "the allowlist is empty: no tool may be called"
		}
		return false, fmt.Sprintf("the allowlist has %s only", list(s.Allowlist))
	}}}
}

package policy

import (
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
)

// allowlist returns the rule of spec.allowlist: it refuses the tools that match no pattern of the list. An empty list
// allows no tools.
func allowlist(s *v1.ToolPolicySpec) []*rule {
	if s.Allowlist == nil {
		return nil
	}
	return []*rule{{field: "/spec/allowlist", judge: func(t *Subject) verdict {
		if f, ok := t.allowed(s.Allowlist); ok {
			return verdict{true, f.as(t, fmt.Sprintf("on the allowlist as %q", f.pattern)), f.name}
		}
		if len(s.Allowlist) == 0 {
			return verdict{why: "the allowlist is empty: no tool may be called"}
		}
		return verdict{why: fmt.Sprintf("not on the allowlist (%s)", list(s.Allowlist))}
	}}}
}

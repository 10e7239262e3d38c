package policy

import (
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
)

// blocklist returns the rule of spec.blocklist: it refuses the tools that match one of its patterns.
func blocklist(s *v1.ToolPolicySpec) []*rule {
	if len(s.Blocklist) == 0 {
		return nil
	}
	return []*rule{{field: "/spec/blocklist", judge: func(t *Subject) verdict {
		if f, ok := t.among(s.Blocklist); ok {
			return verdict{false, f.as(t, fmt.Sprintf("on the blocklist as %q", f.pattern)), f.name}
		}
		return verdict{ok: true, why: "not on the blocklist"}
	}}}
}

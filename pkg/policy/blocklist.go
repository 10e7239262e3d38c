package policy

import (
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
)

// blocklist is spec.blocklist: it refuses the tools that fit one of its patterns.
func blocklist(s *v1.ToolPolicySpec) []*rule {
	if len(s.Blocklist) == 0 {
		return nil
	}
	return []*rule{{field: "/spec/blocklist", judge: func(tool string) (bool, string) {
		if p := firstFit(s.Blocklist, tool); p != "" {
			return false, fmt.Sprintf("the blocklist has %q", p)
		}
		return true, "the blocklist does not have it"
	}}}
}

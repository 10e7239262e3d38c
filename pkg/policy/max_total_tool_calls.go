package policy

import v1 "toolctl.dev/toolctl/api/v1"

// maxTotalToolCalls returns the rule of spec.max_total_tool_calls: the maximum number of
// calls in a session, of all tools that the policy governs.
func maxTotalToolCalls(s *v1.ToolPolicySpec) []*rule {
	if s.MaxTotalToolCalls == nil {
		return nil
	}
	return []*rule{{field: "/spec/max_total_tool_calls", count: newCount(*s.MaxTotalToolCalls, v1.PerSession, nil)}}
}

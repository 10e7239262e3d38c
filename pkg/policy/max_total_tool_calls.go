package policy

import v1 "toolctl.dev/toolctl/api/v1"

// maxTotalToolCalls is spec.max_total_tool_calls: the most calls, of all tools
// that the policy governs, in one session.
func maxTotalToolCalls(s *v1.ToolPolicySpec) []*rule {
	if s.MaxTotalToolCalls == nil {
		return nil
	}
	return []*rule{{field: "/spec/max_total_tool_calls", count: newCount(*s.MaxTotalToolCalls, v1.PerSession, nil)}}
}

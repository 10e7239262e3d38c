package policy

import v1 "toolctl.dev/toolctl/api/v1"

// maxToolCallsPerTurn is spec.max_tool_calls_per_turn: the most calls, of all
// tools that the policy governs, in one turn of a session.
func maxToolCallsPerTurn(s *v1.ToolPolicySpec) []*rule {
	if s.MaxToolCallsPerTurn == nil {
		return nil
	}
	return []*rule{{field: "/spec/max_tool_calls_per_turn", count: newCount(*s.MaxToolCallsPerTurn, v1.PerTurn, nil)}}
}

package policy

import v1 "toolctl.dev/toolctl/api/v1"

// maxToolCallsPerTurn returns the rule of spec.max_tool_calls_per_turn: the maximum number
// of calls in a turn of a session, of all tools that the policy governs.
func maxToolCallsPerTurn(s *v1.ToolPolicySpec) []*rule {
	if s.MaxToolCallsPerTurn == nil {
		return nil
	}
	return []*rule{{field: "/spec/max_tool_calls_per_turn", count: newCount(*s.MaxToolCallsPerTurn, v1.PerTurn, nil)}}
}

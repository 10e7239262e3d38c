package policy

import (
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

func TestMaxTotalToolCalls(t *testing.T) {
	const one = `tool "get": refused by policy "careful", rule max_total_tool_calls: 1 of 1 call used this session (careful.yaml:13:3)`
	playAll(t, []ruleTest{
		{name: "0 allows none", spec: v1.ToolPolicySpec{MaxTotalToolCalls: n(0)}, steps: []step{
			{tool: "get", session: "s", want: `tool "get": refused by policy "careful", rule max_total_tool_calls: no calls are allowed this session (careful.yaml:13:3)`},
		}},
		{name: "less than 0 allows none", spec: v1.ToolPolicySpec{MaxTotalToolCalls: n(-1)}, steps: []step{
			{tool: "get", session: "s", want: `tool "get": refused by policy "careful", rule max_total_tool_calls: no calls are allowed this session (careful.yaml:13:3)`},
		}},
		{name: "over all turns", spec: v1.ToolPolicySpec{MaxTotalToolCalls: n(1)}, steps: []step{
			{tool: "pay", session: "s", turn: "1"},
			{tool: "get", session: "s", turn: "2", want: one},
			{tool: "get", session: "other"},
			{tool: "get", session: "other", after: 29 * 24 * 3600e9, want: one},
			{tool: "get", session: "other", after: 30 * 24 * 3600e9}, // the count was dropped
		}},
		{name: "a call without a session is alone", spec: v1.ToolPolicySpec{MaxTotalToolCalls: n(1)}, steps: []step{
			{tool: "get"},
			{tool: "get"},
		}},
	})
}

package policy

import (
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

func TestMaxToolCallsPerTurn(t *testing.T) {
	const two = `tool "get": refused by policy "careful", rule max_tool_calls_per_turn: 2 of 2 calls used this turn (careful.yaml:11:3)`
	playAll(t, []ruleTest{
		{name: "0 allows none", spec: v1.ToolPolicySpec{MaxToolCallsPerTurn: n(0)}, steps: []step{
			{tool: "get", session: "s", want: `tool "get": refused by policy "careful", rule max_tool_calls_per_turn: no calls are allowed this turn (careful.yaml:11:3)`},
			{tool: "get", want: `tool "get": refused by policy "careful", rule max_tool_calls_per_turn: no calls are allowed this turn (careful.yaml:11:3)`},
		}},
		{name: "each turn anew", spec: v1.ToolPolicySpec{MaxToolCallsPerTurn: n(2)}, steps: []step{
			{tool: "get", session: "s", turn: "1"},
			{tool: "pay", session: "s", turn: "1"},
			{tool: "get", session: "s", turn: "1", want: two},
			{tool: "get", session: "s", turn: "2"},
			{tool: "get", session: "other", turn: "1"},
		}},
		{name: "calls without a turn share one", spec: v1.ToolPolicySpec{MaxToolCallsPerTurn: n(2)}, steps: []step{
			{tool: "get", session: "s"},
			{tool: "get", session: "s", turn: "1"},
			{tool: "get", session: "s"},
			{tool: "get", session: "s", want: two},
		}},
		{name: "a call without a session is alone", spec: v1.ToolPolicySpec{MaxToolCallsPerTurn: n(1)}, steps: []step{
			{tool: "get", turn: "1"},
			{tool: "get", turn: "1"},
		}},
	})
}

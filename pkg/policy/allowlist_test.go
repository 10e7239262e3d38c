package policy

import (
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

func TestAllowlist(t *testing.T) {
	playAll(t, []ruleTest{
		{name: "absent allows all", steps: []step{{tool: "get"}}},
		{name: "empty allows none", spec: v1.ToolPolicySpec{Allowlist: []string{}}, steps: []step{
			{tool: "get", want: `tool "get": refused by policy "careful", rule allowlist: the allowlist is empty: no tool may be called (careful.yaml:14:3)`},
		}},
		{name: "names and patterns", spec: v1.ToolPolicySpec{Allowlist: []string{"get-*", "pay"}}, steps: []step{
			{tool: "get-weather"},
			{tool: "pay"},
			{tool: "pay-now", want: `tool "pay-now": refused by policy "careful", rule allowlist: not on the allowlist ("get-*", "pay") (careful.yaml:14:3)`},
		}},
		{name: "a long list is cut", spec: v1.ToolPolicySpec{Allowlist: []string{"a", "b", "c", "d", "e", "f"}}, steps: []step{
			{tool: "x", want: `tool "x": refused by policy "careful", rule allowlist: not on the allowlist ("a", "b", "c", "d" and 2 more) (careful.yaml:14:3)`},
		}},
		{name: "blocked stays blocked", spec: v1.ToolPolicySpec{Allowlist: []string{"*"}, Blocklist: []string{"pay"}}, steps: []step{
			{tool: "get"},
			{tool: "pay", want: `tool "pay": refused by policy "careful", rule blocklist: on the blocklist as "pay" (careful.yaml:12:3)`},
		}},
	})
}

package policy

import (
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

func TestBlocklist(t *testing.T) {
	playAll(t, []ruleTest{
		{name: "empty blocks nothing", spec: v1.ToolPolicySpec{Blocklist: []string{}}, steps: []step{{tool: "get"}}},
		{name: "names and patterns", spec: v1.ToolPolicySpec{Blocklist: []string{"pay", "admin-*", "git__*"}}, steps: []step{
			{tool: "pay", want: `tool "pay": refused by policy "careful", rule blocklist: on the blocklist as "pay" (careful.yaml:12:3)`},
			{tool: "pay-now"},
			{tool: "admin-", want: `tool "admin-": refused by policy "careful", rule blocklist: on the blocklist as "admin-*" (careful.yaml:12:3)`},
			{tool: "admin"},
			{tool: "git__push", want: `tool "git__push": refused by policy "careful", rule blocklist: on the blocklist as "git__*" (careful.yaml:12:3)`},
			{tool: "Pay"},
		}},
		{name: "all", spec: v1.ToolPolicySpec{Blocklist: []string{"*"}}, steps: []step{
			{tool: "get", want: `tool "get": refused by policy "careful", rule blocklist: on the blocklist as "*" (careful.yaml:12:3)`},
		}},
	})
}

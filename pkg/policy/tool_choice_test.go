package policy

import (
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

func TestToolChoice(t *testing.T) {
	playAll(t, []ruleTest{
		{name: "absent", steps: []step{{tool: "get"}}},
		{name: "auto", spec: v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceAuto}, steps: []step{{tool: "get"}}},
		{name: "required", spec: v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceRequired}, steps: []step{{tool: "get"}}},
		{name: "none", spec: v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceNone}, steps: []step{
			{tool: "get", want: `tool "get": refused by policy "careful", rule tool_choice: tool_choice is none: no tool may be called (careful.yaml:10:3)`},
			{tool: "git__push", session: "s", want: `tool "git__push": refused by policy "careful", rule tool_choice: tool_choice is none: no tool may be called (careful.yaml:10:3)`},
		}},
		{name: "a choice that no reader lets through refuses", spec: v1.ToolPolicySpec{ToolChoice: "nome"}, steps: []step{
			{tool: "get", want: `tool "get": refused by policy "careful", rule tool_choice: tool_choice is "nome", which has no meaning: expected auto, required or none (careful.yaml:10:3)`},
		}},
	})
}

package policy

import (
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
)

// toolChoice returns the rule of spec.tool_choice. The value "none" refuses every call; "auto" and "required" refuse
// no call, and affect only the agent loop.
func toolChoice(s *v1.ToolPolicySpec) []*rule {
	if s.ToolChoice == "" {
		return nil
	}
	ok := s.ToolChoice == v1.ToolChoiceAuto || s.ToolChoice == v1.ToolChoiceRequired
	why := "tool_choice is " + s.ToolChoice
	switch {
	case s.ToolChoice == v1.ToolChoiceNone:
		why += ": no tool may be called"
	case !ok:
		why = fmt.Sprintf("tool_choice is %q, which has no meaning: expected auto, required or none", s.ToolChoice)
	}
	return []*rule{{field: "/spec/tool_choice", idle: ok, judge: func(*Subject) verdict { return verdict{ok: ok, why: why} }}}
}

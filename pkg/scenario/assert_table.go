package scenario

import (
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/params"
	"toolctl.dev/toolctl/internal/textcheck"
)

// assertions are the types of [v1.AssertionTypes] that are judged. [textcheck.New] has the types
// that are rules for a text.
var assertions = map[string]func() assertion{
	"tools_called":               of[toolsCalled],
	"tools_called_session":       of[toolsCalledSession],
	"tools_not_called":           of[toolsNotCalled],
	"tool_call_count":            of[toolCallCount],
	"tool_call_args":             of[toolCallArgs],
	"tool_args":                  of[toolArgs],
	"tool_calls_with_args":       of[toolCallsWithArgs],
	"tools_not_called_with_args": of[toolsNotCalledWithArgs],
	"tool_call_order":            of[toolCallOrder],
	"tool_call_chain":            of[toolCallChain],
	"tool_anti_pattern":          of[toolAntiPattern],
	"tool_no_repeat":             of[toolNoRepeat],
	"tool_efficiency":            of[toolEfficiency],
	"no_tool_errors":             of[noToolErrors],
	"tool_result_includes":       of[toolResultIncludes],
	"tool_result_matches":        of[toolResultMatches],
	"tool_result_has_media":      of[toolResultHasMedia],
	"tool_result_media_type":     of[toolResultMediaType],
	"tool_exec":                  of[toolExec],
	"json_path":                  of[jsonPath],
	"latency_budget":             of[latencyBudget],
	"cost_budget":                of[costBudget],
	"guardrail_triggered":        of[guardrailTriggered],
	"policy_refusals":            of[policyRefusals],
	"llm_judge":                  of[judgeAnswer],
	"llm_judge_session":          of[judgeConversation],
	"llm_judge_tool_calls":       of[judgeCalls],
}

// of creates an assertion of a type.
func of[T any, P interface {
	*T
	assertion
}]() assertion {
	return P(new(T))
}

// AssertionParams returns the names of the parameters of an assertion type that is judged.
func AssertionParams(t *v1.AssertionType) []string {
	if text := textcheck.New(t.Name, t.Name, nil, false); text != nil {
		return params.Names(text)
	}
	if t.Unjudged != "" {
		return nil
	}
	return params.Names(assertions[t.Name]())
}

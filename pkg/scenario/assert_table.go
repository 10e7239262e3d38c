package scenario

import "sync"

// judgements says how each assertion of v1.AssertionTypes that is judged is judged.
var judgements = sync.OnceValue(func() map[string]judgement {
	one := func(missing bool, message string) string {
		if missing {
			return "the parameter " + message + " is missing"
		}
		return ""
	}
	return map[string]judgement{
		"tools_called":         {needTools, toolsCalled},
		"tools_called_session": {needTools, toolsCalled},
		"tools_not_called":     {needTools, toolsNotCalled},
		"tool_call_count": {func(q *params) string {
			if q.Min == nil && q.Max == nil && q.Count == nil {
				return "the parameter min, max or count is missing"
			}
			return needCount(q)
		}, toolCallCount},
		"tool_call_args": {func(q *params) string {
			if message := needTool(q); message != "" {
				return message
			}
			if len(q.args()) == 0 && len(q.ArgsMatch) == 0 {
				return "the parameter expected_args or args_match is missing"
			}
			return needObject("expected_args", q.args())
		}, toolCallArgs},
		"tool_args": {func(q *params) string {
			if message := needTool(q); message != "" {
				return message
			}
			if len(q.args()) == 0 {
				return "the parameter expected_args is missing"
			}
			return needObject("expected_args", q.args())
		}, toolArgs},
		"tool_calls_with_args": {func(q *params) string { return needObject("expected_args", q.args()) }, toolCallsWithArgs},
		"tools_not_called_with_args": {func(q *params) string {
			if message := needTool(q); message != "" {
				return message
			}
			return one(len(q.ExcludedArgs) == 0 && len(q.ForbiddenArgs) == 0, "excluded_args or forbidden_args")
		}, toolsNotCalledWithArgs},
		"tool_call_order":   {func(q *params) string { return one(len(q.Sequence)+len(q.tools()) == 0, "sequence") }, toolCallOrder},
		"tool_call_chain":   {needSteps, toolCallChain},
		"tool_anti_pattern": {needSequences, toolAntiPattern},
		"tool_no_repeat":    {nil, toolNoRepeat},
		"tool_efficiency": {func(q *params) string {
			return one(q.MaxCalls == nil && q.MaxErrors == nil && q.MaxErrorRate == nil, "max_calls, max_errors or max_error_rate")
		}, toolEfficiency},
		"no_tool_errors":         {nil, noToolErrors},
		"tool_result_includes":   {needTexts, toolResultIncludes},
		"tool_result_matches":    {needPattern, toolResultMatches},
		"tool_result_has_media":  {func(q *params) string { return one(q.MediaType == "", "media_type") }, toolResultHasMedia},
		"tool_result_media_type": {func(q *params) string { return one(q.MIMEType == "" && q.MediaType == "", "mime_type") }, toolResultMediaType},
		"tool_exec": {func(q *params) string {
			if message := needTool(q); message != "" {
				return message
			}
			return needObject("args", q.Args)
		}, toolExec},
		"content_includes":     {needTexts, contentIncludes},
		"content_includes_any": {needTexts, contentIncludesAny},
		"content_excludes":     {needTexts, contentExcludes},
		"content_matches":      {needPattern, contentMatches},
		"min_length":           {func(q *params) string { return needLength("min", q.minLength()) }, minLength},
		"max_length":           {needMaxLength, maxLength},
		"sentence_count":       {func(q *params) string { return needLength("max", q.maxSentences()) }, sentenceCount},
		"field_presence":       {func(q *params) string { return one(len(q.fields()) == 0, "fields") }, fieldPresence},
		"is_valid_json":        {nil, isValidJSON},
		"json_schema": {func(q *params) string {
			if len(q.Schema) == 0 {
				return "the parameter schema is missing"
			}
			return needObject("schema", q.Schema)
		}, jsonSchema},
		"json_path":      {func(q *params) string { return one(q.expression() == "", "expression") }, jsonPath},
		"latency_budget": {func(q *params) string { return one(q.MaxMS == nil, "max_ms") }, latencyBudget},
		"cost_budget": {func(q *params) string {
			return one(q.MaxCostUSD == nil && q.MaxInputTokens == nil && q.MaxOutputTokens == nil && q.MaxTotalTokens == nil, "max_cost_usd, max_input_tokens, max_output_tokens or max_total_tokens")
		}, costBudget},
		"guardrail_triggered":  {needGuardrail, guardrailTriggered},
		"policy_refusals":      {needCount, policyRefusals},
		"llm_judge":            {needCriteria, judgeAnswer},
		"llm_judge_session":    {needCriteria, judgeConversation},
		"llm_judge_tool_calls": {needCriteria, judgeCalls},
	}
})

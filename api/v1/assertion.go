package v1

import (
	"encoding/json"
	"slices"
)

// Assertion holds for a turn or a whole run, with PromptKit's parameter names.
type Assertion struct {
	// Type is one of the types that docs/reference/assertions.md lists. Required. Example: tools_called.
	Type string `json:"type" check:"required,oneof=@assertions"`
	// Params are the parameters of the type. Example: {tools: [pay]}.
	Params json.RawMessage `json:"params,omitempty"`
	// Message is shown when the assertion fails.
	Message string `json:"message,omitempty"`
	// When says which calls must have been made for the assertion to be judged. Default: it is judged always.
	When *AssertionWhen `json:"when,omitempty"`
}

// AssertionWhen is what must have happened for an assertion to be judged; every member that is set must hold.
type AssertionWhen struct {
	// ToolCalled is a tool that was called. Example: pay.
	ToolCalled string `json:"tool_called,omitempty"`
	// ToolCalledPattern is a regular expression (RE2) that fits the name of a tool that was called. Example: ^pay.
	ToolCalledPattern string `json:"tool_called_pattern,omitempty"`
	// AnyToolCalled asks for a call of any tool. Default: false.
	AnyToolCalled bool `json:"any_tool_called,omitempty"`
	// MinToolCalls is how many calls must have been made. Default: 0.
	MinToolCalls int `json:"min_tool_calls,omitempty" check:"min=0"`
}

// AssertionType is a line of the one table of assertions, from which the schema, the help, the
// reference and the nearest names come. Its parameters are the fields of the type that judges it.
type AssertionType struct {
	// Name is the name that messages use; Aliases are other names for it.
	Name    string
	Aliases []string
	// Holds says when it holds.
	Holds string
	// Unjudged says why it is never judged; "" when it is.
	Unjudged string
}

// Reasons for which assertions are never judged.
const (
	needsJudge    = "it needs a judge that PromptKit has"
	needsService  = "it calls a service"
	needsMedia    = "it is about media that a model makes"
	needsWorkflow = "it is about workflows, agents or skills"
	needsVariants = "it compares several runs"
)

var assertionTypes = []AssertionType{
	{Name: "tools_called", Aliases: []string{"tool_called"},
		Holds: "each tool was called `min_calls` (1) to `max_calls` times; counts calls that went well, and with `ignore_validation` those with wrong arguments too"},
	{Name: "tools_called_session",
		Holds: "as `tools_called`, and failed calls count too"},
	{Name: "tools_not_called", Aliases: []string{"tool_not_called", "tools_not_called_session"},
		Holds: "none of the tools was called"},
	{Name: "tool_call_count",
		Holds: "the tool (all tools) was called `count`, or `min` to `max` times"},
	{Name: "tool_call_args",
		Holds: "one call has these arguments, compared as `expect.result` is; `args_match` has regular expressions by argument"},
	{Name: "tool_args", Aliases: []string{"tool_args_session"},
		Holds: "one call has these arguments, compared as text: `\"5\"` is 5"},
	{Name: "tool_calls_with_args",
		Holds: "every call of the tool (of any tool) has these arguments, compared as text, null for any value; and its result fits"},
	{Name: "tools_not_called_with_args", Aliases: []string{"tool_args_excluded_session"},
		Holds: "no call of the tool has one of these values, compared as text; `forbidden_args` has a list of values by argument"},
	{Name: "tool_call_order", Aliases: []string{"tool_call_sequence"},
		Holds: "the tools were called in this order; other calls may come between"},
	{Name: "tool_call_chain",
		Holds: "the tools of the steps were called in this order, and the first call of each step fits `result_includes`, `result_matches`, `args_match` and `no_error`; `chain` is a list of names"},
	{Name: "tool_anti_pattern",
		Holds: "none of these `{sequence, message}` was called, other calls between or not"},
	{Name: "tool_no_repeat",
		Holds: "no tool (of `tools`) was called more than `max_repeats` (1) times in a row"},
	{Name: "tool_efficiency",
		Holds: "there are at most this many calls, failed calls, and failed calls among all (0 to 1)"},
	{Name: "no_tool_errors",
		Holds: "no call (of `tools`) failed"},
	{Name: "tool_result_includes",
		Holds: "the results of `occurrence` (1) calls have all patterns, without regard to case"},
	{Name: "tool_result_matches",
		Holds: "the results of `occurrence` (1) calls fit the regular expression"},
	{Name: "tool_result_has_media",
		Holds: "a result has a part of this type: image, audio, video or document"},
	{Name: "tool_result_media_type",
		Holds: "a result has a part with this MIME type"},
	{Name: "tool_exec",
		Holds: "a call of the tool, made to judge the assertion, completes within `timeout_seconds` (120), and its result matches `success_pattern` (RE2) if there is one"},
	{Name: "content_includes", Aliases: []string{"contains"},
		Holds: "what the model said, taken together, has all patterns, without regard to case; in a manifest of PromptKit its last answer has"},
	{Name: "content_includes_any", Aliases: []string{"contains_any"},
		Holds: "something that the model said has one of the patterns, without regard to case"},
	{Name: "content_excludes", Aliases: []string{"content_not_includes", "banned_words"},
		Holds: "nothing that the model said has one of the patterns, without regard to case; `match_mode: word_boundary` (that of `banned_words`) looks for whole words"},
	{Name: "content_matches", Aliases: []string{"regex"},
		Holds: "the answer fits the regular expression, or with `expect_match: false` does not"},
	{Name: "min_length",
		Holds: "the answer has at least this many bytes"},
	{Name: "max_length", Aliases: []string{"length"},
		Holds: "the answer has at most this many bytes, and at most `max_tokens` tokens of four bytes each"},
	{Name: "sentence_count", Aliases: []string{"max_sentences"},
		Holds: "the answer has at most this many sentences; one ends at `.`, `!` or `?`"},
	{Name: "field_presence", Aliases: []string{"required_fields"},
		Holds: "the answer has all of these texts, without regard to case"},
	{Name: "is_valid_json", Aliases: []string{"json_valid", "valid_json"},
		Holds: "the answer is JSON; with `allow_wrapped` in a code block, with `extract_json` anywhere in the text"},
	{Name: "json_schema",
		Holds: "the answer is JSON that fits the JSON Schema"},
	{Name: "json_path",
		Holds: "what the JMESPath expression (a JSONPath when it begins with `$`) finds in the answer is `expected`, a list that `contains` all of these, a number from `min` to `max`, a list of `min_results` to `max_results`"},
	{Name: "latency_budget",
		Holds: "the calls took at most this many milliseconds together, in virtual time when they are mocked"},
	{Name: "cost_budget",
		Holds: "the model used at most so much; of a scripted one, four bytes are a token and 100,000 tokens a dollar"},
	{Name: "guardrail_triggered",
		Holds: "a policy refused a call, named by the policy, by its rule, or as `tool_policy` for any; or a validator of the prompt, named by its type, changed the last reply (of `direction: input`: refused what the user said); with `should_trigger: false`, neither did"},
	{Name: "policy_refusals",
		Holds: "policies refused `count`, or `min` to `max` (at least one) calls"},
	{Name: "llm_judge",
		Holds: "the model of `--judge-model` finds that the answer meets `criteria` or `rubric`, with a score of at least `min_score` (0 to 1); with `conversation_aware` it reads the conversation too. Without such a model it is not judged"},
	{Name: "llm_judge_session", Aliases: []string{"llm_judge_conversation"},
		Holds: "as `llm_judge`, for the whole conversation"},
	{Name: "llm_judge_tool_calls",
		Holds: "as `llm_judge`, for the calls (of `tools`) and their results"},

	{Name: "faithfulness", Aliases: []string{"answer_relevancy", "contextual_precision", "contextual_recall", "contextual_relevancy", "hallucination"}, Unjudged: needsJudge},
	{Name: "bias", Aliases: []string{"toxicity", "pii_leakage", "role_violation"}, Unjudged: needsJudge},
	{Name: "text_toxicity", Aliases: []string{"text_sentiment", "topic_policy", "image_moderation", "audio_emotion"}, Unjudged: "it needs a classifier model"},
	{Name: "cosine_similarity", Unjudged: "it needs an embedding model"},
	{Name: "rest_eval", Aliases: []string{"rest_eval_session", "a2a_eval", "a2a_eval_session"}, Unjudged: needsService},
	{Name: "image_format", Aliases: []string{"image_dimensions", "audio_format", "audio_duration", "video_duration", "video_resolution"}, Unjudged: needsMedia},
	{Name: "workflow_complete", Aliases: []string{"state_is", "workflow_state_is", "transitioned_to", "workflow_transitioned_to", "workflow_transition_order", "workflow_tool_access", "spoke_in_state",
		"agent_invoked", "agent_not_invoked", "agent_response_contains", "skill_activated", "skill_not_activated", "skill_activation_order",
		"composition_step_output", "composition_branch_taken", "composition_parallel_complete", "composition_output"}, Unjudged: needsWorkflow},
	{Name: "outcome_equivalent", Aliases: []string{"directional", "invariant_fields_preserved"}, Unjudged: needsVariants},
	{Name: "assertion", Aliases: []string{"guardrail", "tools_offered"}, Unjudged: "toolctl does not have it"},
}

// AssertionTypes returns the table of assertions.
func AssertionTypes() []AssertionType { return slices.Clone(assertionTypes) }

// FindAssertionType returns the type that has the name or the alias.
func FindAssertionType(name string) (AssertionType, bool) {
	for _, t := range assertionTypes {
		if t.Name == name || slices.Contains(t.Aliases, name) {
			return t, true
		}
	}
	return AssertionType{}, false
}

// AssertionNames returns every name and alias, in the order of the table.
func AssertionNames() []string {
	var all []string
	for _, t := range assertionTypes {
		all = append(append(all, t.Name), t.Aliases...)
	}
	return all
}

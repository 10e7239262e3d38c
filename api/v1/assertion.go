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
	// When limits the assertion to runs with certain calls. Default: the assertion is always evaluated.
	When *AssertionWhen `json:"when,omitempty"`
}

// AssertionWhen is the condition for evaluating an assertion; every member that is set must hold.
type AssertionWhen struct {
	// ToolCalled is a tool that was called. Example: pay.
	ToolCalled string `json:"tool_called,omitempty"`
	// ToolCalledPattern is a regular expression (RE2) that matches the name of a called tool. Example: ^pay.
	ToolCalledPattern string `json:"tool_called_pattern,omitempty"`
	// AnyToolCalled requires a call of any tool. Default: false.
	AnyToolCalled bool `json:"any_tool_called,omitempty"`
	// MinToolCalls is the minimum number of calls. Default: 0.
	MinToolCalls int `json:"min_tool_calls,omitempty" check:"min=0"`
}

// AssertionType is a row of the table of assertions. The schema, the help, the reference and the suggestions for
// misspelt names are generated from it. Its parameters are the fields of the type that evaluates it.
type AssertionType struct {
	// Name is the name that messages use; Aliases are other names for it.
	Name    string
	Aliases []string
	// Holds says when it holds.
	Holds string
	// Unjudged is the reason why the assertion is never evaluated; "" if it is.
	Unjudged string
}

// Reasons why some assertions are never evaluated.
const (
	needsJudge    = "it needs a judge that only PromptKit has"
	needsService  = "it calls a service"
	needsMedia    = "it is about media that a model makes"
	needsWorkflow = "it is about workflows, agents or skills"
	needsVariants = "it compares several runs"
)

var assertionTypes = []AssertionType{
	{Name: "tools_called", Aliases: []string{"tool_called"},
		Holds: "each tool was called `min_calls` (1) to `max_calls` times; successful calls count, and with `ignore_validation` also calls with invalid arguments"},
	{Name: "tools_called_session",
		Holds: "as `tools_called`, but failed calls count too"},
	{Name: "tools_not_called", Aliases: []string{"tool_not_called", "tools_not_called_session"},
		Holds: "none of the tools was called"},
	{Name: "tool_call_count",
		Holds: "the tool (default: all tools together) was called `count` times, or `min` to `max` times"},
	{Name: "tool_call_args",
		Holds: "one call has these arguments, compared in the same way as `expect.result`; `args_match` maps arguments to regular expressions"},
	{Name: "tool_args", Aliases: []string{"tool_args_session"},
		Holds: "one call has these arguments, compared as text: `\"5\"` equals 5"},
	{Name: "tool_calls_with_args",
		Holds: "every call of the tool (default: of any tool) has these arguments, compared as text (null matches any value), and its result matches"},
	{Name: "tools_not_called_with_args", Aliases: []string{"tool_args_excluded_session"},
		Holds: "no call of the tool has one of these values, compared as text; `forbidden_args` maps arguments to lists of values"},
	{Name: "tool_call_order", Aliases: []string{"tool_call_sequence"},
		Holds: "the tools were called in this order; other calls may come between"},
	{Name: "tool_call_chain",
		Holds: "the tools of the steps were called in this order, and the first call of each step matches `result_includes`, `result_matches`, `args_match` and `no_error`; `chain` is a list of names"},
	{Name: "tool_anti_pattern",
		Holds: "none of these sequences (`{sequence, message}`) was called, with or without other calls between"},
	{Name: "tool_no_repeat",
		Holds: "no tool (or none of `tools`) was called more than `max_repeats` (1) times in a row"},
	{Name: "tool_efficiency",
		Holds: "there were at most `max_calls` calls and `max_errors` failed calls, and at most the fraction `max_error_rate` (0 to 1) of the calls failed"},
	{Name: "no_tool_errors",
		Holds: "no call (or no call of `tools`) failed"},
	{Name: "tool_result_includes",
		Holds: "the results of at least `occurrence` (1) calls contain all patterns, ignoring case"},
	{Name: "tool_result_matches",
		Holds: "the results of at least `occurrence` (1) calls match the regular expression"},
	{Name: "tool_result_has_media",
		Holds: "a result has a part of this type: image, audio, video or document"},
	{Name: "tool_result_media_type",
		Holds: "a result has a part with this MIME type"},
	{Name: "tool_exec",
		Holds: "toolctl calls the tool to evaluate the assertion; the call completes within `timeout_seconds` (120), and its result matches `success_pattern` (RE2) if there is one"},
	{Name: "content_includes", Aliases: []string{"contains"},
		Holds: "the texts of the model together contain all patterns, ignoring case; in a PromptKit manifest, its last answer contains them"},
	{Name: "content_includes_any", Aliases: []string{"contains_any"},
		Holds: "a text of the model contains one of the patterns, ignoring case"},
	{Name: "content_excludes", Aliases: []string{"content_not_includes", "banned_words"},
		Holds: "no text of the model contains any of the patterns, ignoring case; `match_mode: word_boundary` (the default of `banned_words`) searches for whole words"},
	{Name: "content_matches", Aliases: []string{"regex"},
		Holds: "the answer matches the regular expression; with `expect_match: false`, it does not"},
	{Name: "min_length",
		Holds: "the answer has at least this many bytes"},
	{Name: "max_length", Aliases: []string{"length"},
		Holds: "the answer has at most this many bytes, and at most `max_tokens` tokens of four bytes each"},
	{Name: "sentence_count", Aliases: []string{"max_sentences"},
		Holds: "the answer has at most this many sentences; a sentence ends at `.`, `!` or `?`"},
	{Name: "field_presence", Aliases: []string{"required_fields"},
		Holds: "the answer contains all of these texts, ignoring case"},
	{Name: "is_valid_json", Aliases: []string{"json_valid", "valid_json"},
		Holds: "the answer is JSON; with `allow_wrapped` the JSON may be in a code block, with `extract_json` anywhere in the text"},
	{Name: "json_schema",
		Holds: "the answer is JSON that is valid against the JSON Schema"},
	{Name: "json_path",
		Holds: "the value that the JMESPath expression (a JSONPath if it begins with `$`) finds in the answer equals `expected`, is a list with all items of `contains`, a number from `min` to `max`, or a list of `min_results` to `max_results` items"},
	{Name: "latency_budget",
		Holds: "the calls took at most this many milliseconds in total; mocked calls take virtual time"},
	{Name: "cost_budget",
		Holds: "the model used at most this many tokens or dollars; for a scripted model, four bytes count as a token and 100,000 tokens as a dollar"},
	{Name: "guardrail_triggered",
		Holds: "a policy refused a call (name the policy, its rule, or `tool_policy` for any policy), or a validator of the prompt (name its type) changed the last reply or, with `direction: input`, refused the user's message; with `should_trigger: false`, neither happened"},
	{Name: "policy_refusals",
		Holds: "policies refused `count` calls, or `min` to `max` calls (default: at least one)"},
	{Name: "llm_judge",
		Holds: "the model of `--judge-model` decides that the answer meets `criteria` or `rubric`, with a score of at least `min_score` (0 to 1); with `conversation_aware` it reads the conversation too. Without a judge model, the assertion is not evaluated"},
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

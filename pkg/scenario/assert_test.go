package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
)

const shopTools = `
apiVersion: promptkit.altairalabs.ai/v1alpha1
kind: Tool
metadata: {name: find}
spec: {description: d, input_schema: {type: object, properties: {query: {type: string}, page: {type: integer}}}, mock_result: {items: [Red mug, Blue mug], price: 12.5}}
---
apiVersion: promptkit.altairalabs.ai/v1alpha1
kind: Tool
metadata: {name: buy}
spec: {description: d, input_schema: {type: object, properties: {id: {type: integer}}, required: [id]}, mock_result: {order: 7}}
---
apiVersion: promptkit.altairalabs.ai/v1alpha1
kind: Tool
metadata: {name: chart}
spec:
  description: d
  input_schema: {type: object}
  mock_parts: [{type: text, text: A chart.}, {type: image, media: {data: aGk=, mime_type: image/png}}]
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {blocklist: [forbidden]}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: forbidden}
spec: {description: d, input_schema: {type: object}, mock_result: {}}
---
`

// TestAssertions checks that every judged assertion passes and fails where it should, both in a PromptKit manifest and
// in a Scenario manifest with the same calls.
func TestAssertions(t *testing.T) {
	cases := []struct {
		name, holds, fails string // the type, and the parameters
	}{
		{"tools_called", "tools: [find, buy]", "tools: [find, chart], min_calls: 2"},
		{"tool_called", "tool_name: find", "tool_name: nothing"},
		{"tools_called", "tool_names: [buy], ignore_validation: true, min_calls: 2", "tool_names: [buy], min_calls: 2"},
		{"tools_called_session", "tools: [buy], min_calls: 2", "tools: [buy], min_calls: 3"},
		{"tools_not_called", "tools: [nothing]", "tool_names: [find]"},
		{"tool_call_count", "tool: find, min: 2, max: 2", "max: 3"},
		{"tool_args", "tool_name: find, expected_args: {page: \"2\"}", "tool_name: find, expected_args: {page: 3}"},
		{"tool_calls_with_args", "tool_name: find, expected_args: {query: null}, no_error: true", "tool_name: find, expected_args: {page: 2}"},
		{"tool_calls_with_args", "tool_name: find, result_includes: [red MUG], args_match: {query: ^mu}", "tool_name: buy, no_error: true"},
		{"tools_not_called_with_args", "tool_name: find, forbidden_args: {query: [cups, plates]}", "tool_name: find, excluded_args: {page: 2}"},
		{"tool_call_sequence", "sequence: [find, buy, chart]", "sequence: [buy, find]"},
		{"tool_call_chain", "steps: [{tool: find, result_matches: \"12\"}, {tool: chart, no_error: true}]", "steps: [{tool: find, args_match: {query: ^c}}]"},
		{"tool_call_chain", "chain: [find, chart]", "chain: [chart, find]"},
		{"tool_anti_pattern", "patterns: [{sequence: [buy, find]}]", "patterns: [{sequence: [find, buy], message: look twice}]"},
		{"tool_no_repeat", "max_repeats: 2", "tools: [find]"},
		{"tool_efficiency", "max_calls: 6, max_errors: 2, max_error_rate: 0.5", "max_error_rate: 0.1"},
		{"no_tool_errors", "tools: [find, chart]", "tools: [buy]"},
		{"tool_result_includes", "tool: find, patterns: [blue mug, RED], occurrence: 2", "tool_name: find, patterns: [green]"},
		{"tool_result_matches", "tool: buy, pattern: '\"order\": ?7'", "pattern: '\"order\": ?8'"},
		{"tool_result_has_media", "tool: chart, media_type: image", "media_type: audio"},
		{"tool_result_media_type", "mime_type: image/PNG", "tool: find, mime_type: image/png"},
		{"tool_exec", "tool: find, args: {query: x}, timeout_seconds: 5", "tool: buy"},
		{"latency_budget", "max_ms: 0", "max_ms: -1"},
		{"guardrail_triggered", "validator_type: careful", "validator: careful, should_trigger: false"},
		{"guardrail_triggered", "validator_type: tool_policy", "validator_type: max_total_tool_calls"},
		{"policy_refusals", "count: 1", "min: 2"},
		{"content_includes", "patterns: [\"\\\"ORDER\\\"\"]", "patterns: [order, green]"},
		{"content_includes_any", "patterns: [green, total]", "patterns: [green]"},
		{"content_excludes", "patterns: [green]", "patterns: [TOTAL]"},
		{"banned_words", "patterns: [tot]", "patterns: [Total]"},
		{"content_matches", "pattern: '(?s)\"total\": *25'", "pattern: total, expect_match: false"},
		{"banned_words", "words: [tot]", "words: [Total]"},
		{"max_sentences", "max_sentences: 2", "max: 1"},
		{"sentence_count", "max: 2", "max_sentences: 1"},
		{"required_fields", "required_fields: [TOTAL]", "fields: [total, green]"},
		{"field_presence", "fields: [total]", "fields: [green]"},
		{"min_length", "min_characters: 5", "min: 500"},
		{"max_length", "max: 500", "max_chars: 5"},
		{"length", "max_tokens: 500", "max_tokens: 5"},
		{"max_length", "max: 500, max_tokens: 500", "max: 500, max_tokens: 5"},
		{"is_valid_json", "allow_wrapped: true", ""},
		{"valid_json", "extract_json: true", ""},
		{"json_schema", "allow_wrapped: true, schema: {type: object, required: [total]}", "extract_json: true, schema: {type: object, required: [gone]}"},
		{"json_path", "allow_wrapped: true, expression: 'items[0].name', expected: Red mug", "extract_json: true, jmespath_expression: total, max: 20"},
		{"json_path", "allow_wrapped: true, expression: 'items[].name', contains: [Blue mug], min_results: 2", "allow_wrapped: true, expression: items, max_results: 1"},
		{"json_path", "allow_wrapped: true, expression: $.total, min: 25, max: 25", "allow_wrapped: true, expression: $.total, expected: '25'"},
		{"cost_budget", "max_total_tokens: 1000, max_cost_usd: 1", "max_output_tokens: 1"},
		{"llm_judge", "criteria: total, min_score: 0.8", "rubric: chart"}, // for the judge in judge_test.go
		{"llm_judge", "criteria: Two mugs, conversation_aware: true", "criteria: Two mugs"},
		{"llm_judge_conversation", "criteria: Let me look", "criteria: total, min_score: 0.9"},
		{"llm_judge_session", "criteria: policy_refused", "criteria: yellow"},
		{"llm_judge_tool_calls", "criteria: Blue mug, temperature: 0, max_tokens: 100", "criteria: chart, tools: [find]"},
		{"assertion", "eval_type: llm_judge, eval_params: {criteria: total}, min_score: 0.8", "eval_type: llm_judge_tool_calls, eval_params: {criteria: find}, min_score: 0.9"},
	}
	const answer = "Here it is! Look:\n```json\n{\"order\": 7, \"total\": 25, \"items\": [{\"name\": \"Red mug\"}, {\"name\": \"Blue mug\"}]}\n```\n"
	responses := fmt.Sprintf(`scenarios: {s: {turns: {1: {response: Let me look., tool_calls: [
  {name: find, arguments: {query: mugs, page: 1}}, {name: find, arguments: {query: mugs, page: 2}}, {name: buy, arguments: {id: x}}, {name: buy, arguments: {id: 1}}, {name: forbidden, arguments: {}}, {name: chart, arguments: {}}]},
  2: %q}}}`, answer)
	raw, violations := manifest.ToJSON("m.yaml", []byte(responses))
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	script, violations := scenario.ReadResponses(raw)
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	judge := &scenario.Judge{Model: mentions{}}
	play := func(t *testing.T, spec string) scenario.Result {
		objects, scenarios := decode(t, shopTools+"apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec:\n"+spec)
		o := options()
		o.Responses, o.Judge = script, judge
		return runAll(t, objects, scenarios, o).Scenarios[0]
	}
	tried := map[string]bool{}
	for _, c := range cases {
		kind, _ := v1.FindAssertionType(c.name)
		tried[kind.Name] = true
		for verdict, params := range map[string]string{scenario.Passed: c.holds, scenario.Failed: c.fails} {
			if params == "" && verdict == scenario.Failed && c.name != "is_valid_json" && c.name != "valid_json" {
				continue
			}
			for _, at := range []string{"  turns: [{role: user, content: Two mugs, assertions: %s}]\n", "  turns: [{role: user, content: Two mugs}]\n  conversation_assertions: %s\n"} {
				t.Run(c.name+" "+params, func(t *testing.T) {
					res := play(t, fmt.Sprintf(at, "[{type: "+c.name+", params: {"+params+"}}]"))
					if res.Status != verdict || res.Judged != 1 || res.Total != 1 {
						t.Errorf("%s, judged %d of %d (%s): want %s\n%s", res.Status, res.Judged, res.Total, res.Reason, verdict, strings.Join(texts(res), "\n"))
					}
				})
			}
		}
	}
	for _, k := range v1.AssertionTypes() {
		if k.Unjudged == "" && !tried[k.Name] && k.Name != "tool_call_args" { // PromptKit does not have this type
			t.Errorf("no case of %s", k.Name)
		}
	}

	t.Run("what is not judged", func(t *testing.T) {
		judge = nil
		res := play(t, `  turns:
  - role: user
    content: Two mugs
    assertions:
    - {type: llm_judge, params: {criteria: polite}}
    - {type: llm_jduge}
    - {type: tools_called, params: {tools: find}}
    - {type: tools_called, params: {tools: [find], min_score: 0.5}}
    - {type: no_tool_errors, when: {tool_called: nothing}}
    - {type: guardrail_triggered, params: {validator_type: banned_words}}
    - {type: guardrail_triggered, params: {validator_type: tool_policy, direction: inpt, should_trigger: false}}
    - {type: guardrail_triggered, params: {validator_type: pii_leakage, should_trigger: false}}
  - {role: user, content: Thanks}
  - {role: user, content: More, assertions: [{type: content_includes, params: {patterns: [more]}}]}
  conversation_assertions: [{type: content_includes, params: {patterns: [more]}}]
`)
		var got []string
		for _, u := range res.Unjudged {
			got = append(got, fmt.Sprintf("%d %s: %s", u.Turn, u.Type, u.Reason))
		}
		want := []string{
			`1 llm_jduge: toolctl does not know it; did you mean "llm_judge"?`,
			`1 tools_called: parameter "tools": expected a list, got string`,
			"1 tools_called: it needs a score (min_score)",
			`1 guardrail_triggered: parameter "direction": expected input, output or both, got "inpt"`,
			"1 llm_judge: it needs a judge model: name one with --judge-model",
			`1 no_tool_errors: when: tool "nothing" was not called`,
			`1 guardrail_triggered: "banned_words" is not a policy of this scenario, a rule of one, or a validator of a prompt`,
			`1 guardrail_triggered: validator "pii_leakage" is not applied: it needs a judge that only PromptKit has`,
			"3 content_includes: turn 3 was not run",
			"0 content_includes: not every turn is run",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		if res.Status != scenario.Skipped || res.Judged != 0 || res.Total != 10 || !strings.Contains(res.Reason, "tools_called: it needs a score (min_score)") {
			t.Errorf("got %s, %d of %d, %q", res.Status, res.Judged, res.Total, res.Reason)
		}
	})
}

package scenario_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/validate"
)

func TestCover(t *testing.T) {
	objects, scenarios := decode(t, `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: t}
spec:
  description: t
  input_schema:
    type: object
    required: [a, list]
    properties:
      a: {enum: [1, 2.0, x]}
      b: {type: string}
      list: {type: array, items: {type: object, required: [id], properties: {id: {$ref: "#/$defs/id"}}}}
    $defs: {id: {type: string, enum: [p, q]}}
  mock_result: 1
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: p}
spec: {blocklist: [nothing], max_total_tool_calls: 3, limits: [{max_calls: 100, per: day}]}
---
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: s}
spec:
  turns:
  - calls:
    - {tool: t, args: {a: 1, list: [{id: q}]}}
    - {tool: t, args: {a: 2, list: [{}]}, expect: {status: failed}}
    - {tool: t, args: {a: x, list: []}}
    - {tool: t, args: {a: x, list: []}}
    - {tool: t, args: {a: x, list: []}, expect: {policy: {decision: deny}}}
`)
	cov := scenario.Cover(objects, runAll(t, objects, scenarios, options()))
	var got []string
	for _, o := range slices.Concat(cov.Tools, cov.Policies) {
		got = append(got, fmt.Sprintf("%s %d/%d calls %d", o.Name, o.Covered, o.Total, o.Calls))
		for _, item := range o.Items {
			if !item.Covered {
				got = append(got, "not: "+item.Kind+" "+item.Name)
			}
		}
	}
	want := []string{
		"t 10/15 calls 5",
		"not: property /b",
		`not: enum /list/*/id "p"`,
		"not: required /a", "not: required /list",
		"not: error execution",
		"p 1/3 calls 1", "not: rule blocklist", "not: rule limits[0]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if cov.Covered != 11 || cov.Total != 18 || cov.Percent != 61.1 {
		t.Errorf("got %d of %d, %g%%", cov.Covered, cov.Total, cov.Percent)
	}
}

func TestGenerate(t *testing.T) {
	tests := map[string]string{
		"scalars":   `{"type":"object","required":["a","b","c","d"],"properties":{"a":{"type":"integer","minimum":5,"maximum":6},"b":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1.2},"c":{"type":"boolean"},"d":{"type":"null"}}}`,
		"texts":     `{"type":"array","minItems":3,"items":{"type":"string","minLength":12,"maxLength":14}}`,
		"formats":   `{"type":"object","required":["a","b","c","d","e","f","g","h"],"properties":{"a":{"format":"date-time"},"b":{"format":"email"},"c":{"format":"uuid"},"d":{"format":"uri"},"e":{"format":"ipv4"},"f":{"format":"ipv6"},"g":{"format":"date"},"h":{"format":"time"}}}`,
		"pattern":   `{"type":"string","pattern":"^[A-Z]{2}-[0-9]{3,5}(x|y)?$"}`,
		"choices":   `{"oneOf":[{"type":"object","required":["k"],"properties":{"k":{"const":"a"}}},{"type":"array","items":{"enum":[1,2]}}]}`,
		"all of":    `{"allOf":[{"$ref":"#/$defs/base"},{"required":["more"],"properties":{"more":{"type":"integer","multipleOf":7}}}],"$defs":{"base":{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}}}`,
		"recursive": `{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","required":["v"],"properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/node"}}}}}`,
		"draft-07":  `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["a"],"properties":{"a":{"type":["string","null"]}}}`,
		"no type":   `{"properties":{"a":{"minimum":3}}}`,
	}
	for name, schema := range tests {
		t.Run(name, func(t *testing.T) {
			tool := &v1.Tool{Header: v1.Header{Metadata: v1.Metadata{Name: "t"}}, Spec: v1.ToolSpec{OutputSchema: json.RawMessage(schema)}}
			check := validate.NewCache(validate.Options{}).Schema(tool.Spec.OutputSchema, validate.Draft2020)
			seen := map[string]bool{}
			for seed := range int64(20) {
				got, err := scenario.Generate(tool, seed)
				if err != nil {
					t.Fatal(err)
				}
				violations, err := check.ValidateJSON(got)
				if err != nil || len(violations) > 0 {
					t.Fatalf("seed %d: %s does not fit: %v %v", seed, got, violations, err)
				}
				again, err := scenario.Generate(tool, seed)
				if err != nil || string(again) != string(got) {
					t.Fatalf("seed %d gave %s, then %s (%v)", seed, got, again, err)
				}
				seen[string(got)] = true
			}
			if len(seen) < 2 {
				t.Errorf("20 seeds gave only %v", seen)
			}
		})
	}
	for name, schema := range map[string]string{"nothing fits": `{"type":"integer","minimum":2,"maximum":1}`, "no schema": ``} {
		t.Run(name, func(t *testing.T) {
			tool := &v1.Tool{Header: v1.Header{Metadata: v1.Metadata{Name: "t"}}, Spec: v1.ToolSpec{OutputSchema: json.RawMessage(schema)}}
			if got, err := scenario.Generate(tool, 1); err == nil || !strings.Contains(err.Error(), `tool "t"`) {
				t.Errorf("got %s, %v; want an error that names the tool", got, err)
			}
		})
	}
}

// TestReadResponsesChooses checks that content takes precedence over text, and text over response, and that a reply
// has either calls or parts.
func TestReadResponsesChooses(t *testing.T) {
	raw, violations := manifest.ToJSON("m.yaml", []byte(`
scenarios:
  s:
    turns:
      1: {response: other, text: other, content: "yes"}
      2: {response: other, text: "yes"}
      3: {type: multimodal, content: "yes", parts: [{type: text, text: part}], tool_calls: [{name: pay, arguments: {amount: 4}}]}
      4: {parts: [{type: text, text: other}], tool_calls: [{name: pay, arguments: {amount: 5}}]}
      5: {parts: [{type: text, text: "yes"}]}
`))
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	responses, violations := scenario.ReadResponses(raw)
	var got []string
	for _, f := range violations {
		got = append(got, f.Path+" "+f.Message)
	}
	want := []string{
		`/scenarios/s/turns/1/response "response" is not read: "content" says what is answered`,
		`/scenarios/s/turns/1/text "text" is not read: "content" says what is answered`,
		`/scenarios/s/turns/2/response "response" is not read: "text" says what is answered`,
		"/scenarios/s/turns/3/tool_calls tool_calls are not made: the type of the answer is multimodal",
		"/scenarios/s/turns/4/parts parts are not read beside tool_calls",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	objects, scenarios := decode(t, weatherTool+`
apiVersion: promptkit.altairalabs.ai/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  turns:
  - {role: user, content: one, assertions: [{type: content_matches, params: {pattern: "^yes$"}}]}
  - {role: user, content: two, assertions: [{type: content_matches, params: {pattern: "^yes$"}}]}
  - {role: user, content: three, assertions: [{type: content_matches, params: {pattern: "^yes$"}}, {type: tools_not_called, params: {tools: [pay]}}]}
  - {role: user, content: four, assertions: [{type: content_matches, params: {pattern: "^yes$"}}, {type: tool_args, params: {tool_name: pay, expected_args: {amount: 5}}}]}
`)
	o := options()
	o.Responses = responses
	if res := runAll(t, objects, scenarios, o).Scenarios[0]; len(texts(res)) > 0 {
		t.Error(texts(res))
	}
}

func TestReadResponses(t *testing.T) {
	raw, violations := manifest.ToJSON("m.yaml", []byte(`
defaultResponse: Anything else?
scenarios:
  s:
    defaultResponse: Good bye.
    turns:
      1: {response: Paid., type: tool_calls, tool_calls: [{name: pay, arguments: {amount: 4}}]}
      2: Thank you.
`))
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	responses, violations := scenario.ReadResponses(raw)
	var got []string
	for _, f := range violations {
		got = append(got, f.String())
	}
	if len(got) > 0 {
		t.Fatal(got)
	}
	objects, scenarios := decode(t, weatherTool+`
apiVersion: promptkit.altairalabs.ai/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  turns:
  - role: user
    content: pay
    assertions: [{type: tool_args, params: {tool_name: pay, expected_args: {amount: 4}}}, {type: content_matches, params: {pattern: Thank}}]
  - {role: user, content: thanks}
  conversation_assertions: [{type: contains, params: {patterns: [thank YOU, more]}}]
`)
	o := options()
	o.Responses = responses
	res := runAll(t, objects, scenarios, o).Scenarios[0]
	wantFailures := []string{`0.0 contains: expected a text with "thank YOU" and "more", got "Good bye." @/spec/assertions/0`}
	if diff := cmp.Diff(wantFailures, texts(res)); diff != "" {
		t.Error(diff)
	}
	var warnings []string
	for _, f := range res.Warnings {
		warnings = append(warnings, f.Message)
	}
	if len(warnings) > 0 {
		t.Error(warnings)
	}

	if r, violations := scenario.ReadResponses(json.RawMessage(`{"defaultResponse":"hi"}`)); r == nil || len(violations) > 0 {
		t.Errorf("a default answer alone: got %v, want nothing", violations)
	}
	bad := map[string]string{
		`[]`: "expected an object, got array", `{}`: "expected scenarios, got nothing", `{"scenarios":{"s":{"turns":{"0":"x"}}}}`: `expected the number of a turn, from 1, got "0"`,
		`{"scenarios":{"s":{"turns":{"1":5}}}}`:                  "expected a text or an object, got number",
		`{"scenarios":{"s":{"turns":{"1":{"tool_calls":"x"}}}}}`: "expected a list of calls with name and arguments, got string",
	}
	for text, message := range bad {
		r, violations := scenario.ReadResponses(json.RawMessage(text))
		if r != nil || !slices.ContainsFunc(violations, func(f v1.Violation) bool { return f.Message == message }) {
			t.Errorf("%s: got %v, want %q", text, violations, message)
		}
	}
}

// TestResponsesOfConversation checks that replies are found by the scenario's id, and are numbered through the
// conversation if there are more replies than turns.
func TestResponsesOfConversation(t *testing.T) {
	raw, violations := manifest.ToJSON("m.yaml", []byte(`
scenarios:
  visit:
    turns:
      1: {response: One moment., tool_calls: [{name: pay, arguments: {amount: 1}}]}
      2: {tool_calls: [{name: pay, arguments: {amount: 2}}]}
      3: Both are paid.
      4: You are welcome.
      6: See you.
  by-turn:
    turns:
      1: {tool_calls: [{name: pay, arguments: {amount: 3}}]}
      2: Paid.
  visit-scenario:
    turns:
      1: Never said.
`))
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	responses, violations := scenario.ReadResponses(raw)
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	tests := map[string]struct {
		head string
		want []string // the calls and the text of each turn that was played
	}{
		"by id, with more answers than turns": {"metadata: {name: visit-scenario}\nspec:\n  id: visit\n", []string{"2 One moment.\nBoth are paid.", "0 You are welcome.", "0 ", "0 See you."}},
		"by name, with an id of no answers":   {"metadata: {name: by-turn}\nspec:\n  id: other\n", []string{"1 ", "0 Paid.", "0 ", "0 "}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects, scenarios := decode(t, weatherTool+"\napiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Scenario\n"+tt.head+
				"  turns: [{role: user, content: a}, {role: user, content: b}, {role: user, content: c}, {role: user, content: d}]\n")
			o := options()
			o.Responses = responses
			res := runAll(t, objects, scenarios, o).Scenarios[0]
			var got []string
			for _, turn := range res.Turns {
				got = append(got, fmt.Sprintf("%d %s", len(turn.Calls), turn.Text))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			for _, f := range res.Warnings {
				if strings.Contains(f.Path, "id") {
					t.Errorf("the id is read, and yet: %s", f.Message)
				}
			}
		})
	}
}

// TestNamespaces checks that a name in several namespaces means the object in the scenario's own namespace.
func TestNamespaces(t *testing.T) {
	const tool = "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: t, namespace: %s}\nspec: {description: t, input_schema: {type: object}, mock_result: %s}\n---\n"
	const s = "apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: s, namespace: %s}\nspec: {tools: %s, mocks: {%s: {responses: [{times: 1, result: mocked}, {times: 1}]}}, turns: [{calls: [{tool: t, expect: {result: mocked}}, {tool: t, expect: {result: %[1]s}}]}]}\n---\n"
	objects, scenarios := decode(t, fmt.Sprintf(tool, "a", "a")+fmt.Sprintf(tool, "b", "b")+fmt.Sprintf(s, "a", "[t, b/t]", "t")+fmt.Sprintf(s, "b", "[a/t, b/t]", "b/t")+fmt.Sprintf(s, "c", "[a/t, b/t]", "a/t"))
	r := runAll(t, objects, scenarios, options())
	for _, res := range r.Scenarios[:2] {
		if res.Status != scenario.Passed {
			t.Errorf("namespace %s: %q", res.Namespace, texts(res))
		}
	}
	if got := texts(r.Scenarios[2]); r.Scenarios[2].Status != scenario.Failed || !strings.Contains(got[0], `tool "t" not found; did you mean "a/t" or "b/t"?`) {
		t.Errorf("namespace c: %q", got)
	}
}

func TestTimeoutOfAScenario(t *testing.T) {
	objects, scenarios := load(t, "\n  turns: [{calls: [{tool: pay}]}]")
	o := options()
	o.Timeout = time.Nanosecond
	res := runAll(t, objects, scenarios, o).Scenarios[0]
	if got := texts(res); res.Status != scenario.Failed || len(got) == 0 || !strings.Contains(got[len(got)-1], "timed out after 1ns") {
		t.Errorf("%s: %q", res.Status, got)
	}
}

func TestFromExamples(t *testing.T) {
	objects, _ := decode(t, `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: t, namespace: n}
spec:
  description: t
  input_schema: {type: object}
  examples: [{args: {a: 1}, expect: {result: {b: 2}}}, {expect: {status: failed}}]
  mock_result: {b: 3}
`)
	tool := objects[0].(*v1.Tool)
	tool.Fields = map[string]v1.Source{"/spec/examples/1/expect/status": {File: "t.yaml", Line: 8}, "/spec/examples/10": {Line: 1}}
	res := runAll(t, objects, []*v1.Scenario{scenario.FromExamples(tool)}, options()).Scenarios[0]
	want := []string{
		"1.1 result $.b: expected 2, got 3 @/spec/turns/0/calls/0/expect/result/b",
		"2.1 status: expected failed, got complete @/spec/turns/1/calls/0/expect/status",
	}
	if diff := cmp.Diff(want, texts(res)); diff != "" {
		t.Error(diff)
	}
	if at := res.Failures[1].Source; at.Line != 8 {
		t.Errorf("the place is %s", at)
	}
	tool.Spec.Examples = nil
	if scenario.FromExamples(tool) != nil {
		t.Error("a tool without examples has a scenario")
	}
}

// FuzzRun runs every readable input: nothing may panic, hang or use a network, and a failed scenario must give a
// reason.
func FuzzRun(f *testing.F) {
	f.Add([]byte(weatherTool + "apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: s}\nspec:\n  mocks: {pay: {responses: [{when: 'args.amount > 1', fault: {kind: schema_violation}}, {template: '{{.a}}'}]}}\n  turns: [{calls: [{tool: pay, args: {amount: 1}, expect: {result: {'$..a': {gt: 1}}}}]}]\n  assertions: [{type: tools_called, params: {tools: [pay]}}]\n"))
	f.Add([]byte("apiVersion: promptkit.altairalabs.ai/v1\nkind: Scenario\nmetadata: {name: s}\nspec: {turns: [{role: user, content: x, assertions: [{type: tool_args, params: {}}]}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, _ := manifest.Decode("f.yaml", data, manifest.Options{})
		var scenarios []*v1.Scenario
		for _, o := range objects {
			if s, ok := o.(*v1.Scenario); ok {
				scenarios = append(scenarios, s)
			}
		}
		o := options()
		o.Timeout = 5 * time.Second
		for _, res := range runAll(t, objects, scenarios, o).Scenarios {
			if res.Status == "" || res.Status != scenario.Passed && res.Status != scenario.Skipped && len(res.Failures) == 0 {
				t.Errorf("%s: %q without a failure", res.Name, res.Status)
			}
		}
	})
}

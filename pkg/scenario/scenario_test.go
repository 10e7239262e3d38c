package scenario_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const weatherTool = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-weather}
spec:
  description: weather
  mode: live
  timeout_ms: 2000
  redact: [key]
  input_schema:
    type: object
    properties: {location: {type: string}, days: {type: integer}, key: {type: string}}
    required: [location]
  output_schema:
    type: object
    properties: {location: {type: string}, temperature: {type: number}}
    required: [location, temperature]
  http: {url: "https://weather.invalid/{{.location}}"}
  mock_template: '{"location": "{{.location}}", "temperature": 21.5, "big": 12345678901234567890, "tags": ["sun", "wind"]}'
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec:
  description: pay
  input_schema: {type: object, properties: {amount: {type: integer}}}
  mock_result: {paid: true}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: bare}
spec:
  description: no mock
  input_schema: {type: object}
  http: {url: "https://bare.invalid/"}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec:
  limits: [{tools: [pay], max_calls: 2, per: minute}]
  blocklist: [nothing]
---
`

// load returns tools and one scenario with the given spec.
func load(t testing.TB, spec string) ([]v1.Object, []*v1.Scenario) {
	t.Helper()
	return decode(t, weatherTool+"apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: s}\nspec:\n"+spec)
}

func decode(t testing.TB, text string) ([]v1.Object, []*v1.Scenario) {
	t.Helper()
	objects, violations := manifest.Decode("s.yaml", []byte(text), manifest.Options{})
	for _, f := range violations {
		if !f.IsWarning() {
			t.Fatalf("manifest: %s", f)
		}
	}
	var scenarios []*v1.Scenario
	for _, o := range objects {
		if s, ok := o.(*v1.Scenario); ok {
			scenarios = append(scenarios, s)
		}
	}
	return objects, scenarios
}

func options() scenario.Options {
	return scenario.Options{Mock: executors.All(executors.Options{})[0], ToJSON: manifest.ToJSON}
}

func run(t testing.TB, spec string) scenario.Result {
	t.Helper()
	objects, scenarios := load(t, spec)
	return runAll(t, objects, scenarios, options()).Scenarios[0]
}

func runAll(t testing.TB, objects []v1.Object, scenarios []*v1.Scenario, o scenario.Options) *scenario.Report {
	t.Helper()
	r, err := scenario.New(objects, o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Run(t.Context(), scenarios)
}

// text formats a failure on one line.
func text(f scenario.Failure) string {
	s := fmt.Sprintf("%d.%d %s", f.Turn, f.Call, f.What)
	if f.Path != "" {
		s += " " + f.Path
	}
	if f.Expected != "" {
		s += ": expected " + f.Expected + ", got " + f.Got
	}
	if f.Message != "" {
		s += ": " + f.Message
	}
	if f.Source.Line > 0 {
		s += fmt.Sprintf(" @%s", f.Field)
	}
	return s
}

func texts(r scenario.Result) []string {
	var out []string
	for _, f := range r.Failures {
		out = append(out, text(f))
	}
	return out
}

func TestRun(t *testing.T) {
	tests := map[string]struct {
		spec   string
		status string
		want   []string
	}{
		"a live tool answers from its own mock": {
			spec: `
  turns: [{calls: [{tool: get-weather, args: {location: Oslo}, expect: {result: {location: Oslo, temperature: {gt: 20, lt: 22}, big: 12345678901234567890, tags: {contains: sun}, "$.tags[1]": wind, "$.tags[*]": [sun, wind]}}}]}]`,
			status: scenario.Passed,
		},
		"what differs has path, place and both values": {
			spec: `
  turns:
  - calls:
    - {tool: get-weather, args: {location: Oslo}, expect: {result: {location: Bergen, temperature: {gt: 30}, big: 12345678901234567891, gone: {exists: true}, tags: [sun], "$.tags[5]": 1, "$..x[": 2}}}`,
			status: scenario.Failed,
			want: []string{
				`1.1 result $: expected a JSONPath that can be read: unexpected eof at position 6, got {"big":12345678901234567890,"location":"Oslo","tags":["sun","wind"],"temperature":21.5} @/spec/turns/0/calls/0/expect/result/$..x[`,
				`1.1 result $.tags[5]: expected 1, got nothing @/spec/turns/0/calls/0/expect/result/$.tags[5]`,
				`1.1 result $.big: expected 12345678901234567891, got 12345678901234567890 @/spec/turns/0/calls/0/expect/result/big`,
				`1.1 result $.gone: expected a value, got nothing @/spec/turns/0/calls/0/expect/result/gone/exists`,
				`1.1 result $.location: expected "Bergen", got "Oslo" @/spec/turns/0/calls/0/expect/result/location`,
				`1.1 result $.tags: expected an array of length 1 ["sun"], got ["sun","wind"] @/spec/turns/0/calls/0/expect/result/tags`,
				`1.1 result $.temperature: expected above 30, got 21.5 @/spec/turns/0/calls/0/expect/result/temperature/gt`,
			},
		},
		"a tool without a mock fails whatever is expected": {
			spec:   "\n  turns: [{calls: [{tool: bare, expect: {status: failed}}]}]",
			status: scenario.Failed,
			want:   []string{`1.1 mock: tool "bare" has no mock: add spec.mocks.bare to the scenario, or mock_result to the tool; with --live the real tool is called @/spec/turns/0/calls/0`},
		},
		"errors, policies and durations are expected": {
			spec: `
  mocks: {pay: {responses: [{times: 1, fault: {kind: latency, ms: 400}}, {error: declined}]}}
  turns:
  - calls:
    - {tool: pay, args: {amount: 1}, expect: {duration_ms: 500, policy: {decision: allow}}}
    - {tool: pay, args: {amount: "x"}, expect: {error: {type: args_invalid, path: /amount, message: integer}}}
    - {tool: pay, expect: {error: {type: execution_failed, message: declined}}}
    - {tool: pay, expect: {status: failed, policy: {decision: deny, rule: "limits[0]"}, error: {type: policy_refused}}}
    - {tool: nobody, expect: {error: {type: not_found}}}`,
			status: scenario.Passed,
		},
		"each member of an expectation can differ": {
			spec: `
  mocks: {pay: {responses: [{times: 1, fault: {kind: latency, ms: 400}}, {error: declined}]}}
  turns:
  - calls:
    - {tool: pay, expect: {duration_ms: 300, policy: {decision: audit, rule: blocklist}}}
    - {tool: pay, expect: {error: {type: timeout, path: /a, message: accepted}}}
    - {tool: get-weather, args: {location: x}, expect: {error: {type: timeout}}}
    - {tool: pay}
    - {tool: get-weather, args: {location: x}, expect: {status: failed}}`,
			status: scenario.Failed,
			want: []string{
				"1.1 policy.decision: expected audit, got allow @/spec/turns/0/calls/0/expect/policy/decision",
				"1.1 policy.rule: expected blocklist, got allow @/spec/turns/0/calls/0/expect/policy/rule",
				"1.1 duration_ms: expected under 300, got 400 @/spec/turns/0/calls/0/expect/duration_ms",
				`1.2 error.type: expected timeout, got execution_failed: tool "pay": declined @/spec/turns/0/calls/1/expect/error/type`,
				`1.2 error.path: expected /a, got "" @/spec/turns/0/calls/1/expect/error/path`,
				`1.2 error.message: expected a message that contains "accepted", got "tool \"pay\": declined" @/spec/turns/0/calls/1/expect/error/message`,
				"1.3 error: expected an error of type timeout, got none; the status is complete @/spec/turns/0/calls/2/expect/error",
				`1.4 status: expected complete, got failed: policy_refused: tool "pay": refused by policy "careful", rule limits[0]: 2 of 2 calls of "pay" used this minute; the next minute starts at 2026-01-01T12:01:00Z (s.yaml:41:12) @/spec/turns/0/calls/3`,
				"1.5 status: expected failed, got complete @/spec/turns/0/calls/4/expect/status",
			},
		},
		"names that are not there make it invalid": {
			spec: `
  tools: [get-wether]
  policies: [careless]
  turns: [{calls: [{tool: pay}]}]`,
			status: scenario.Invalid,
			want: []string{
				`0.0 scenario: tool "get-wether" not found; did you mean "get-weather"? @/spec/tools/0`,
				`0.0 scenario: toolpolicy "careless" not found @/spec/policies/0`,
			},
		},
		"mocks and turns that make no sense make it invalid": {
			spec: `
  mocks:
    pay: {}
    default/pay: {result: 1}
    nobody: {result: 1}
    get-weather: {responses: [{when: "args.", result: 1}, {when: 5, result: 1}, {when: "1 + 1", result: 2}, {template: "{{", times: 1}, {error: x, result: 1}], cassette: none.yaml}
  turns: [{user: hello}, {calls: [{tool: pay}], model: [{text: hi}]}, {calls: [{tool: pay}], prompt: nothing}]
  assertions: [{type: tools_called, params: {tool: [pay]}}, {type: tool_call_count}, {type: policy_refusals, params: {min: 1.5}}, {type: tool_call_args, params: {tool: pay, args_match: {a: "("}}}]`,
			status: scenario.Invalid,
			want: []string{
				`0.0 scenario: spec.mocks.get-weather.cassette: the cassette "none.yaml" does not exist: record it with 'toolctl record --cassette FILE -- call ...' @/spec/mocks/get-weather/cassette`,
				`0.0 scenario: spec.mocks.get-weather.responses[0].when: "args.": not a JMESPath expression: column 6: expected identifier, lbracket, or lbrace @/spec/mocks/get-weather/responses/0/when`,
				`0.0 scenario: spec.mocks.get-weather.responses[1].when: expected an object of arguments or a JMESPath expression, got number @/spec/mocks/get-weather/responses/1/when`,
				`0.0 scenario: spec.mocks.get-weather.responses[2].when: "1 + 1": not a JMESPath expression: column 3: unknown char: '+' @/spec/mocks/get-weather/responses/2/when`,
				`0.0 scenario: spec.mocks.get-weather.responses[3].template: line 1: unclosed action @/spec/mocks/get-weather/responses/3/template`,
				`0.0 scenario: spec.mocks.get-weather.responses[4].error: a response either fails or has a result, not both @/spec/mocks/get-weather/responses/4/error`,
				`0.0 scenario: spec.mocks.get-weather.cassette: a mock has either a cassette or answers of its own, not both @/spec/mocks/get-weather/cassette`,
				`0.0 scenario: spec.mocks.nobody: tool "nobody" not found @/spec/mocks/nobody`,
				`0.0 scenario: spec.mocks.pay: tool "pay" has two mocks @/spec/mocks/pay`,
				`0.0 scenario: spec.turns[0]: a turn needs calls, or model with the replies of a scripted model @/spec/turns/0`,
				`0.0 scenario: spec.turns[1].model: a turn has either calls or a scripted model, not both @/spec/turns/1/model`,
				`0.0 scenario: spec.turns[2].calls: prompt and user need a scripted model, not calls @/spec/turns/2/calls`,
				`0.0 scenario: spec.turns[2].prompt: prompt "nothing" not found @/spec/turns/2/prompt`,
				`0.0 scenario: spec.assertions[0].params: unknown parameter "tool": expected tools, tool_names, tool_name, min_calls, max_calls, ignore_validation, require_args; did you mean "tools"? @/spec/assertions/0/params`,
				`0.0 scenario: spec.assertions[1].params: the parameter min, max or count is missing @/spec/assertions/1/params`,
				`0.0 scenario: spec.assertions[2].params: parameter "min": expected a whole number, got 1.5 @/spec/assertions/2/params`,
				"0.0 scenario: spec.assertions[3].params: args_match.a is not a regular expression (RE2): error parsing regexp: missing closing ): `(` @/spec/assertions/3/params",
			},
		},
		"responses are tried in order": {
			spec: `
  policies: []
  mocks:
    pay:
      responses:
      - {when: {amount: {gt: 100}}, error: too much}
      - {when: "args.amount > 50 && call > 1", result: {paid: half}}
      - {times: 1, result: {paid: once}}
      - {template: '{"paid": {{.amount}}}', times: 1}
  turns:
  - calls:
    - {tool: pay, args: {amount: 60}, expect: {result: {paid: once}}}
    - {tool: pay, args: {amount: 60}, expect: {result: {paid: half}}}
    - {tool: pay, args: {amount: 101}, expect: {error: {message: too much}}}
    - {tool: pay, args: {amount: 7}, expect: {result: {paid: 7}}}
    - {tool: pay, args: {amount: 8}, expect: {status: failed}}`,
			status: scenario.Failed,
			want:   []string{`1.5 mock: the mock has no response left for call 5 of "pay" with {"amount":8} @/spec/mocks/pay`},
		},
		"a condition that fails says so": {
			spec: `
  mocks: {pay: {responses: [{when: "args", result: 1}]}}
  turns: [{calls: [{tool: pay, expect: {status: failed}}]}]`,
			status: scenario.Failed,
			want:   []string{`1.1 mock: "args": gave map[]: expected true or false @/spec/mocks/pay/responses/0/when`},
		},
		"a scripted model is judged by assertions": {
			spec: `
  turns:
  - user: pay
    model:
    - {text: paying, tool_calls: [{tool: pay, args: {amount: 5}}, {tool: pay, args: '{"amount": '}]}
    - {text: done}
    assertions:
    - {type: content_includes, params: {patterns: [PAYING, done]}}
    - {type: tool_call_count, params: {tool: pay, count: 2}}
    - {type: no_tool_errors}`,
			status: scenario.Failed,
			want:   []string{`1.0 no_tool_errors: expected no call that fails, got pay: args_invalid: tool "pay": invalid arguments: the arguments are not JSON: invalid JSON at line 1, column 12: expected a value, got the end of the text @/spec/turns/0/assertions/2`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			res := run(t, tt.spec)
			if res.Status != tt.status {
				t.Errorf("status %s, want %s", res.Status, tt.status)
			}
			if diff := cmp.Diff(tt.want, texts(res)); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	tests := map[string]struct{ fault, typ, message string }{
		"timeout":                  {"kind: timeout", v1.TypeTimeout, `tool "get-weather": timed out after 2s`},
		"latency past the timeout": {"kind: latency, ms: 2000", v1.TypeTimeout, `tool "get-weather": timed out after 2s`},
		"status":                   {"kind: status, status: 503", v1.TypeExecutionFailed, `tool "get-weather": HTTP status 503 Service Unavailable`},
		"status by default":        {"kind: status", v1.TypeExecutionFailed, `tool "get-weather": HTTP status 500 Internal Server Error`},
		"disconnect":               {"kind: disconnect", v1.TypeConnectFailed, `tool "get-weather": the connection was closed before the answer came`},
		"malformed":                {"kind: malformed", v1.ResultInvalid, `tool "get-weather": the answer is not JSON: unexpected end of JSON input`},
		"oversize":                 {"kind: oversize", v1.ResultInvalid, `tool "get-weather": the response is larger than 10485760 bytes`},
		"schema_violation":         {"kind: schema_violation", v1.ResultInvalid, `tool "get-weather": invalid result: /location: required property "location" is missing`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			res := run(t, "\n  mocks: {get-weather: {fault: {"+tt.fault+"}}}\n  turns: [{calls: [{tool: get-weather, args: {location: Oslo}}]}]")
			got := res.Turns[0].Calls[0].Result.Error
			if got == nil || got.Type != tt.typ || got.Message != tt.message {
				t.Errorf("error %+v, want %s: %s", got, tt.typ, tt.message)
			}
		})
	}
	t.Run("latency only delays", func(t *testing.T) {
		res := run(t, "\n  mocks: {get-weather: {fault: {kind: latency, ms: 1999}}}\n  turns: [{calls: [{tool: get-weather, args: {location: Oslo}}]}]")
		if c := res.Turns[0].Calls[0].Result; c.DurationMS != 1999 || c.Status != v1.StatusComplete {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("schema_violation needs a schema", func(t *testing.T) {
		res := run(t, "\n  mocks: {pay: {fault: {kind: schema_violation}}}\n  turns: [{calls: [{tool: pay}]}]")
		want := []string{`1.1 mock: fault schema_violation: tool "pay" has no output_schema that a result could break @/spec/turns/0/calls/0`}
		if diff := cmp.Diff(want, texts(res)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("probability comes from the seed", func(t *testing.T) {
		spec := "\n  policies: []\n  seed: %d\n  mocks: {pay: {fault: {kind: disconnect, probability: 0.5}}}\n  turns: [{calls: [" + strings.Repeat("{tool: pay},", 40) + "]}]"
		failed := func(seed int) (n int) {
			for _, c := range run(t, fmt.Sprintf(spec, seed)).Turns[0].Calls {
				if c.Result.Error != nil {
					n = n*2 + 1
				} else {
					n *= 2
				}
			}
			return n
		}
		a, again, b := failed(1), failed(1), failed(2)
		if a != again || a == b || a == 0 || a == 1<<40-1 {
			t.Errorf("pattern of failures: %b, again %b, other seed %b", a, again, b)
		}
	})
}

func TestSecretsAreMasked(t *testing.T) {
	res := run(t, `
  turns: [{calls: [{tool: get-weather, args: {location: Oslo, key: hunter2}}]}]
  assertions: [{type: tool_call_args, params: {tool_name: get-weather, expected_args: {location: Bergen}}}]`)
	out, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "hunter2") || !strings.Contains(string(out), "[REDACTED]") {
		t.Errorf("report: %s", out)
	}
}

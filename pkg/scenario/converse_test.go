package scenario_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toolctl.dev/toolctl/pkg/scenario"
)

const payer = `
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: payer}
spec:
  template: Pay {{.amount}}.
  input: {type: object, properties: {amount: {type: integer}}, required: [amount]}
  tools: [pay, bare]
---
`

func TestConverse(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		status     string
		want       []string
		calls      int
		text       string
	}{
		{name: "well", status: scenario.Passed, calls: 1, text: "Paying.\nPaid.", spec: `
  turns:
  - prompt: payer
    args: {amount: 5}
    model: [{sees: {contains: [Pay 5.], tools: [pay, bare]}, text: Paying., tool_calls: [{tool: pay, args: {amount: 5}}]}, {text: Paid.}]`},
		{name: "a user beside the prompt", status: scenario.Passed, text: "Yes.", spec: `
  turns:
  - {prompt: payer, args: {amount: 5}, user: Please., model: [{sees: {contains: ["Pay 5.\nPlease."]}, text: Yes.}]}`},
		{name: "no prompt offers all tools that are chosen", status: scenario.Passed, calls: 1, spec: `
  tools: [pay]
  turns: [{user: hello, model: [{sees: {tools: [pay]}, tool_calls: [{tool: pay}]}]}]`},
		{name: "what the model does not see", status: scenario.Failed, spec: `
  tools: []
  turns: [{user: hello, model: [{sees: {tools: [], contains: [hello, goodbye]}}]}]`,
			want: []string{`1.0 sees.contains: expected a text with "goodbye", got "hello" @/spec/turns/0/model/0/sees/contains/1`}},
		{name: "variables that do not fit", status: scenario.Failed, spec: `
  turns: [{prompt: payer, args: {amount: much}, model: [{text: hi}]}]`,
			want: []string{`1.0 status: expected complete, got failed: args_invalid: invalid arguments: /amount: expected integer, got string "much" @/spec/turns/0`}},
		{name: "variables that do not fit, as expected", status: scenario.Passed, spec: `
  turns: [{prompt: payer, args: {amount: much}, model: [{text: hi}], expect: {error: {type: args_invalid, path: /amount}}}]`},
		{name: "an error of the model", status: scenario.Passed, spec: `
  turns: [{user: hello, model: [{error: overloaded}], expect: {status: failed, error: {type: model_failed, message: overloaded}}}]`},
		{name: "a tool without a mock", status: scenario.Failed, calls: 1, spec: `
  turns: [{user: hello, model: [{tool_calls: [{tool: bare}]}]}]`,
			want: []string{`1.1 mock: tool "bare" has no mock: add spec.mocks.bare to the scenario, or mock_result to the tool; with --live the real tool is called @/spec/turns/0/model`}},
		{name: "fields that go with others", status: scenario.Invalid, spec: `
  turns:
  - {user: hello, args: {a: 1}, model: [{text: hi}]}
  - {user: hello, approve: true, model: [{text: hi}]}
  - {calls: [{tool: pay}], expect: {status: failed}}`,
			want: []string{
				`0.0 scenario: spec.turns[0].args: args are the variables of a prompt, and the turn has no prompt @/spec/turns/0/args`,
				`0.0 scenario: spec.turns[1].approve: approve needs prompt: only the run of a prompt can be pending and continue @/spec/turns/1/approve`,
				`0.0 scenario: spec.turns[2].calls: expect and approve of a turn need a scripted model; each call has its own @/spec/turns/2/calls`,
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects, scenarios := decode(t, weatherTool+payer+"apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: s}\nspec:"+tc.spec)
			res := runAll(t, objects, scenarios, options()).Scenarios[0]
			if res.Status != tc.status {
				t.Errorf("status %s, want %s", res.Status, tc.status)
			}
			if diff := cmp.Diff(tc.want, texts(res)); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
			if len(res.Turns) == 1 && (len(res.Turns[0].Calls) != tc.calls || tc.text != "" && res.Turns[0].Text != tc.text) {
				t.Errorf("%d calls, text %q", len(res.Turns[0].Calls), res.Turns[0].Text)
			}
		})
	}
}

func TestConverseIsDeterministic(t *testing.T) {
	objects, scenarios := decode(t, weatherTool+payer+`apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: s}
spec:
  mocks: {pay: {responses: [{times: 1, result: 1}, {result: 2}]}}
  turns:
  - prompt: payer
    args: {amount: 5}
    model: [{tool_calls: [{tool: pay, args: {amount: 1}}, {tool: pay, args: {amount: 2}}, {tool: pay, args: {amount: 3}}]}, {text: done}]`)
	var first []byte
	for range 5 {
		report, err := json.Marshal(runAll(t, objects, scenarios, options()))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = report
		}
		if !bytes.Equal(first, report) {
			t.Fatalf("%s\n%s", first, report)
		}
	}
}

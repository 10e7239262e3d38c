package scenario_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario"
)

func playCassette(t *testing.T, cassette, spec string) scenario.Result {
	t.Helper()
	objects, scenarios := load(t, spec)
	scenarios[0].Files = map[string][]byte{"c.yaml": []byte(cassette)}
	return runAll(t, objects, scenarios, options()).Scenarios[0]
}

func TestCassette(t *testing.T) {
	const calls = `
calls:
- {tool: pay, args: {amount: 1, note: a}, result: {paid: first}}
- {tool: default/pay, args: {amount: 1, note: a}, result: {paid: second}, duration_ms: 40}
- {tool: pay, args: {amount: 2}, error: {type: mcp_error, server: bank, code: -32000, message: closed}}
- {tool: pay, args: {amount: 3}, error: {type: execution_failed, message: declined, answered: true}}
- {tool: other, args: {amount: 9}, result: 1}
`
	tests := map[string]struct {
		cassette, spec string
		status         string
		want           []string
	}{
		"equal calls are played in order, the last one again": {
			cassette: calls, status: scenario.Passed,
			spec: `
  policies: []
  mocks: {pay: {cassette: c.yaml}}
  turns:
  - calls:
    - {tool: pay, args: {amount: 1, note: a}, expect: {result: {paid: first}}}
    - {tool: pay, args: {note: a, amount: 1.0}, expect: {result: {paid: second}, duration_ms: 41}}
    - {tool: pay, args: {amount: 1, note: a}, expect: {result: {paid: second}}}
    - {tool: pay, args: {amount: 2}, expect: {error: {type: mcp_error, message: closed (code -32000)}}}
    - {tool: pay, args: {amount: 3}, expect: {error: {type: execution_failed, message: declined}}}`,
		},
		"exact takes no more arguments": {
			cassette: calls, status: scenario.Failed,
			spec: "\n  mocks: {pay: {cassette: c.yaml}}\n  turns: [{calls: [{tool: pay, args: {amount: 2, note: b}, expect: {status: failed}}]}]",
			want: []string{`1.1 mock: the cassette "c.yaml" has no call of "pay" with {"amount":2,"note":"b"}; the nearest is call 3: $.note: recorded nothing, got "b" @/spec/mocks/pay/cassette`},
		},
		"subset does": {
			cassette: "match: subset" + calls, status: scenario.Passed,
			spec: "\n  mocks: {pay: {cassette: c.yaml}}\n  turns: [{calls: [{tool: pay, args: {amount: 2, note: b}, expect: {status: failed}}]}]",
		},
		"a scenario's match wins": {
			cassette: "match: subset" + calls, status: scenario.Failed,
			spec: "\n  mocks: {pay: {cassette: c.yaml, match: exact}}\n  turns: [{calls: [{tool: pay, args: {amount: 3, note: b}, expect: {status: failed}}]}]",
			want: []string{`1.1 mock: the cassette "c.yaml" has no call of "pay" with {"amount":3,"note":"b"}; the nearest is call 4: $.note: recorded nothing, got "b" @/spec/mocks/pay/cassette`},
		},
		"what is ignored": {
			cassette: "ignore: [/note]" + calls, status: scenario.Passed,
			spec: "\n  mocks: {pay: {cassette: c.yaml, ignore: [/amount]}}\n  turns: [{calls: [{tool: pay, args: {amount: 77, note: b}}]}]",
		},
		"no call of the tool": {
			cassette: "calls: []", status: scenario.Failed,
			spec: "\n  mocks: {pay: {cassette: c.yaml}}\n  turns: [{calls: [{tool: pay, expect: {status: failed}}]}]",
			want: []string{`1.1 mock: the cassette "c.yaml" has no call of "pay" with {}; it has no call of this tool at all @/spec/mocks/pay/cassette`},
		},
		"no YAML": {
			cassette: "calls: [", status: scenario.Invalid,
			spec: "\n  mocks: {pay: {cassette: c.yaml}}\n  turns: [{calls: [{tool: pay}]}]",
			want: []string{`0.0 scenario: spec.mocks.pay.cassette: c.yaml:1:1: not YAML: did not find expected node content @/spec/mocks/pay/cassette`},
		},
		"an unknown field": {
			cassette: "calls: [{tol: pay}]", status: scenario.Invalid,
			spec: "\n  mocks: {pay: {cassette: c.yaml}}\n  turns: [{calls: [{tool: pay}]}]",
			want: []string{`0.0 scenario: spec.mocks.pay.cassette: the cassette "c.yaml": it cannot be read: unknown field "tol" @/spec/mocks/pay/cassette`},
		},
		"an unknown match": {
			cassette: "match: fuzzy\ncalls: []", status: scenario.Invalid,
			spec: "\n  mocks: {pay: {cassette: c.yaml}}\n  turns: [{calls: [{tool: pay}]}]",
			want: []string{`0.0 scenario: spec.mocks.pay.cassette: the cassette "c.yaml": unknown match "fuzzy": expected exact or subset @/spec/mocks/pay/cassette`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			res := playCassette(t, tt.cassette, tt.spec)
			if res.Status != tt.status {
				t.Errorf("status %s, want %s", res.Status, tt.status)
			}
			if diff := cmp.Diff(tt.want, texts(res)); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

// flaky fails in a different way for each amount.
type flaky struct{}

func (flaky) Name() string { return v1.ModeMock }

func (flaky) Execute(_ context.Context, tool *v1.Tool, args json.RawMessage) (v1.Result, error) {
	var in struct{ Amount int }
	if err := json.Unmarshal(args, &in); err != nil {
		return v1.Result{}, err
	}
	name := tool.Metadata.Name
	switch in.Amount {
	case 1:
		return v1.Result{Status: v1.StatusFailed, Attempts: 1}, &v1.ExecutionError{Tool: name, Phase: v1.PhaseExecute, Message: "HTTP 402"}
	case 2:
		return v1.Result{}, &v1.ExecutionError{Tool: name, Phase: v1.PhaseConnect, Message: "cannot connect", Cause: errors.New("refused")}
	case 3:
		return v1.Result{}, &v1.MCPError{Server: "bank", Code: -32001, Message: "gone"}
	case 4:
		return v1.Result{}, &v1.ExecutionError{Tool: name, Phase: v1.PhaseTimeout, Message: "timed out after 1s"}
	case 5:
		return v1.Result{}, &v1.ExecutionError{Tool: name, Phase: v1.PhaseValidate, Message: "not JSON"}
	}
	return v1.Result{Content: json.RawMessage(`{"paid":true,"token":"t0ken"}`), Parts: []v1.Part{{Type: v1.PartText, Text: `{"password":"p"}`}}, Attempts: 1}, nil
}

// TestRecordAndReplay checks that a recording replays the same results and errors.
func TestRecordAndReplay(t *testing.T) {
	objects, _ := load(t, "\n  turns: [{calls: [{tool: pay}]}]")
	objects = objects[1:2] // the tool pay, without policies
	rec := scenario.NewRecorder(nil)
	reg, err := registry.New(objects, registry.Options{Executors: rec.Wrap([]registry.Executor{flaky{}})})
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	var real []*v1.ResultError
	var spec strings.Builder
	spec.WriteString("\n  policies: []\n  mocks: {pay: {cassette: c.yaml}}\n  turns:\n  - calls:\n")
	for _, args := range []string{`{"amount":6}`, `{"amount":5}`, `{"amount":4}`, `{"amount":3}`, `{"amount":2}`, `{"amount":1}`} {
		res, _ := reg.Execute(t.Context(), v1.Call{Tool: "pay", Args: json.RawMessage(args)})
		real = append(real, res.Error)
		spec.WriteString("    - {tool: pay, args: " + args + "}\n")
	}
	text, err := manifest.MarshalYAML(rec.Cassette())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"t0ken", `"p"`} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the cassette holds %s:\n%s", secret, text)
		}
	}
	if first, last := strings.Index(string(text), "amount: 1"), strings.Index(string(text), "amount: 6"); first < 0 || first > last {
		t.Errorf("the cassette is not sorted:\n%s", text)
	}
	res := playCassette(t, string(text), spec.String())
	for i, c := range res.Turns[0].Calls {
		if diff := cmp.Diff(real[i], c.Result.Error); diff != "" {
			t.Errorf("call %d: error (-real +played):\n%s", i+1, diff)
		}
	}
	if got := string(res.Turns[0].Calls[0].Result.Content); got != `{"paid":true,"token":"[REDACTED]"}` {
		t.Errorf("played %s", got)
	}
}

func TestCassetteAdd(t *testing.T) {
	a := &scenario.Cassette{Match: "exact", Redacted: []string{"token"}, Calls: []scenario.Recorded{{Tool: "b", Args: json.RawMessage(`{}`)}}}
	a.Add(&scenario.Cassette{Match: "subset", Ignore: []string{"/x"}, Redacted: []string{"pin", "token"}, Calls: []scenario.Recorded{{Tool: "a", Args: json.RawMessage(`{}`)}}})
	want := &scenario.Cassette{Match: "subset", Ignore: []string{"/x"}, Redacted: []string{"pin", "token"}, Calls: []scenario.Recorded{{Tool: "a", Args: json.RawMessage(`{}`)}, {Tool: "b", Args: json.RawMessage(`{}`)}}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
}

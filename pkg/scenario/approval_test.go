package scenario_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/scenario"
)

const waitingTool = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: pay, input_schema: {type: object}, mock_result: {paid: true}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {require_approval: [pay], max_total_tool_calls: 1}
---
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: s}
spec:
`

func TestApproval(t *testing.T) {
	for _, tt := range []struct {
		name, calls string
		want        []string
	}{
		{name: "nobody answers", calls: "{tool: pay, expect: {status: pending, policy: {decision: pending, rule: require_approval}}}"},
		{name: "the decision says the status", calls: "{tool: pay, expect: {policy: {decision: pending}}}"},
		{name: "approved", calls: "{tool: pay, approve: true, expect: {result: {paid: true}, policy: {decision: allow, rule: require_approval}}}"},
		{name: "denied", calls: "{tool: pay, approve: false, expect: {error: {type: policy_refused, message: denied by the scenario}, policy: {decision: deny, rule: require_approval}}}"},
		{name: "what waits or was denied uses nothing up", calls: "{tool: pay, expect: {status: pending}}, {tool: pay, args: {a: 1}, approve: false, expect: {status: failed}}, {tool: pay, args: {a: 2}, approve: true}"},
		{name: "not expected", calls: "{tool: pay}", want: []string{`1.1 status: expected complete, got pending: tool "pay" needs approval by policy "careful" @/spec/turns/0/calls/0`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects, scenarios := decode(t, waitingTool+"  turns: [{calls: ["+tt.calls+"]}]")
			res := runAll(t, objects, scenarios, options()).Scenarios[0]
			if got := texts(res); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSimulateApproval(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	decided := func(d string) *v1.ApprovalRecord { return &v1.ApprovalRecord{ID: "x", Decision: d, Time: at} }
	decision := func(d, rule string) *v1.PolicyDecision {
		return &v1.PolicyDecision{Decision: d, Rule: rule, Policy: "careful"}
	}
	call := func(status string, d *v1.PolicyDecision, a *v1.ApprovalRecord) v1.AuditRecord {
		return v1.AuditRecord{Time: at, CallID: "c", Session: "s", Tool: "pay", Namespace: "default", Status: status, Policy: d, Approval: a}
	}
	for _, tt := range []struct {
		name    string
		records []v1.AuditRecord
		want    string // "was -> now" of the changed calls
		calls   int
	}{
		{name: "still waits", records: []v1.AuditRecord{call("pending", decision("pending", "require_approval"), nil)}, calls: 1},
		{name: "would wait now", records: []v1.AuditRecord{call("complete", nil, nil)}, want: "allow -> pending", calls: 1},
		{name: "was approved", records: []v1.AuditRecord{
			call("pending", decision("pending", "require_approval"), nil), call("approved", decision("pending", "require_approval"), decided("approved")),
			call("complete", decision("allow", "require_approval"), decided("approved")),
		}, calls: 2},
		{name: "was denied", records: []v1.AuditRecord{call("failed", decision("deny", "require_approval"), decided("denied"))}, calls: 1},
		{name: "an approved call counts, one that waits does not", records: []v1.AuditRecord{
			call("pending", decision("pending", "require_approval"), nil), call("complete", decision("allow", "require_approval"), decided("approved")),
			call("complete", decision("allow", "require_approval"), decided("approved")),
		}, want: "allow -> deny", calls: 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects, _ := decode(t, waitingTool+"  turns: [{calls: [{tool: pay}]}]")
			sim, err := scenario.Simulate(t.Context(), objects, tt.records)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range sim.Changed {
				got = append(got, c.Was.Decision+" -> "+c.Now.Decision)
			}
			if strings.Join(got, ", ") != tt.want || sim.Calls != tt.calls || sim.Skipped != 0 {
				raw, _ := json.Marshal(sim)
				t.Errorf("got %s, want %q and %d calls: %s", got, tt.want, tt.calls, raw)
			}
		})
	}
}

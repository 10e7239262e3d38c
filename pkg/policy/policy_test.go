package policy

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// noon is the time of every test that does not set its own.
var noon = time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)

// named returns a policy in the namespace default, with the rules at known lines of policy.yaml.
func named(name string, spec v1.ToolPolicySpec) *v1.ToolPolicy {
	p := &v1.ToolPolicy{Spec: spec}
	p.APIVersion, p.Kind = v1.APIVersion, v1.KindToolPolicy
	p.Metadata.Name = name
	p.Source = v1.Source{File: name + ".yaml", Line: 1, Column: 1}
	p.Fields = map[string]v1.Source{}
	for i, field := range []string{"tool_choice", "max_tool_calls_per_turn", "blocklist", "max_total_tool_calls", "allowlist", "limits", "limits/0", "limits/1"} {
		p.Fields["/spec/"+field] = v1.Source{File: name + ".yaml", Line: 10 + i, Column: 3}
	}
	return p
}

func tool(name string) Subject { return Subject{Namespace: "default", Name: name} }

func n(i int64) *int64 { return &i }

// clocked has counters whose clock stands still.
type clocked struct {
	Counters
	now time.Time
}

func newCounters() *clocked {
	c := &clocked{now: noon}
	c.Counters = NewMemoryCounters(func() time.Time { return c.now })
	return c
}

// step is a call in the test of a rule, and the expected refusal ("" if the call passes).
type step struct {
	tool, session, turn string
	after               time.Duration // time after noon
	want                string
}

// play makes the calls in order under the policies.
func play(t *testing.T, policies []*v1.ToolPolicy, steps []step) {
	t.Helper()
	set, counters := Compile(policies), newCounters()
	for i, s := range steps {
		req := Request{Session: s.session, Turn: s.turn}
		counters.now = noon.Add(s.after)
		adm, err := set.For(tool(s.tool)).Admit(t.Context(), counters, req)
		got := ""
		if err != nil {
			var refused *v1.PolicyError
			if !errors.As(err, &refused) {
				t.Fatalf("call %d: %v is a %T, want *v1.PolicyError", i, err, err)
			}
			got = err.Error()
			want := v1.PolicyDecision{Decision: v1.DecisionDeny, Rule: refused.Rule, Policy: refused.Policy}
			if adm.Decision != want {
				t.Errorf("call %d: decision %+v, want %+v", i, adm.Decision, want)
			}
		}
		if got != s.want {
			t.Errorf("call %d of %s:\n got %q\nwant %q", i, s.tool, got, s.want)
		}
	}
}

type ruleTest struct {
	name  string
	spec  v1.ToolPolicySpec
	steps []step
}

func playAll(t *testing.T, tests []ruleTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, []*v1.ToolPolicy{named("careful", tt.spec)}, tt.steps)
		})
	}
}

func TestMatch(t *testing.T) {
	none := func(m *v1.Match) v1.ToolPolicySpec { return v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceNone, Match: m} }
	tests := []struct {
		name      string
		namespace string // namespace of the policy
		match     *v1.Match
		tool      Subject
		mismatch  string
	}{
		{name: "no match is every tool", tool: tool("pay")},
		{name: "an empty match is every tool", match: &v1.Match{}, tool: tool("pay")},
		{name: "exact name", match: &v1.Match{Tools: []string{"get", "pay"}}, tool: tool("pay")},
		{name: "server tool by prefix", match: &v1.Match{Tools: []string{"git__*"}}, tool: tool("git__push")},
		{name: "other name", match: &v1.Match{Tools: []string{"pay"}}, tool: tool("pay-now"), mismatch: `match.tools is "pay"`},
		{name: "other namespace", namespace: "prod", tool: tool("pay"), mismatch: `governs the tools of namespace "prod"; this tool is in namespace "default"`},
		{name: "written namespace", namespace: "prod", tool: Subject{Namespace: "prod", Name: "pay"}},
		{
			name: "labels", match: &v1.Match{Labels: map[string]string{"team": "pay", "tier": "1"}},
			tool: Subject{Namespace: "default", Name: "x", Labels: map[string]string{"team": "pay", "tier": "1", "more": "yes"}},
		},
		{
			name: "missing label", match: &v1.Match{Labels: map[string]string{"team": "pay"}}, tool: tool("x"),
			mismatch: `match.labels requires team: "pay"; the tool does not have this label`,
		},
		{
			name: "other label", match: &v1.Match{Labels: map[string]string{"team": "pay"}},
			tool:     Subject{Namespace: "default", Name: "x", Labels: map[string]string{"team": "ops"}},
			mismatch: `match.labels requires team: "pay"; the tool has "ops"`,
		},
		{
			name: "name fits and label does not", match: &v1.Match{Tools: []string{"*"}, Labels: map[string]string{"team": "pay"}},
			tool: tool("x"), mismatch: `match.labels requires team: "pay"; the tool does not have this label`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := named("p", none(tt.match))
			p.Metadata.Namespace = tt.namespace
			chain := Compile([]*v1.ToolPolicy{nil, p}).For(tt.tool)
			adm, err := chain.Admit(t.Context(), newCounters(), Request{})
			if refused := err != nil; refused != (tt.mismatch == "") {
				t.Errorf("Admit: %v, want a refusal: %v", err, tt.mismatch == "")
			}
			if tt.mismatch != "" && adm.Decision != (v1.PolicyDecision{}) {
				t.Errorf("decision %+v of a tool that no policy governs, want none", adm.Decision)
			}
			e, err := chain.Explain(t.Context(), newCounters(), Request{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(e.Unmatched) > 0 {
				got = e.Unmatched[0].Reason
			}
			if got != tt.mismatch {
				t.Errorf("unmatched because %q, want %q", got, tt.mismatch)
			}
		})
	}
}

func TestNothingToAsk(t *testing.T) {
	var nilChain *Chain
	bare := named("bare", v1.ToolPolicySpec{})
	tests := []struct {
		name     string
		chain    *Chain
		decision v1.PolicyDecision
	}{
		{name: "nil chain", chain: nilChain},
		{name: "no policy", chain: Compile(nil).For(tool("x"))},
		{name: "policy without rules", chain: Compile([]*v1.ToolPolicy{bare}).For(tool("x")), decision: v1.PolicyDecision{Decision: v1.DecisionAllow}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			adm, err := tt.chain.Admit(t.Context(), failing{}, Request{Session: "s"})
			if err != nil || adm.Decision != tt.decision {
				t.Errorf("Admit = %+v, %v, want %+v", adm.Decision, err, tt.decision)
			}
			if err := adm.Release(t.Context()); err != nil {
				t.Errorf("Release: %v", err)
			}
			if b := tt.chain.Blocked(); b != nil {
				t.Errorf("Blocked = %v", b)
			}
			e, err := tt.chain.Explain(t.Context(), failing{}, Request{Session: "s"})
			if err != nil || e.Decision != v1.DecisionAllow || len(e.Verdicts) != 0 {
				t.Errorf("Explain = %+v, %v", e, err)
			}
		})
	}
}

// failing has counters that always fail.
type failing struct{}

var errCounters = errors.New("disk is full")

func (failing) Reserve(context.Context, []v1.Counter) ([]v1.Count, int, error) {
	return nil, -1, errCounters
}
func (failing) Release(context.Context, []v1.Counter) error            { return errCounters }
func (failing) Read(context.Context, []v1.Counter) ([]v1.Count, error) { return nil, errCounters }

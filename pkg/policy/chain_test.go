package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

// TestFirstRefusalFollowsTheOrder breaks every rule from some position in the order on. The error names the first of
// these rules.
func TestFirstRefusalFollowsTheOrder(t *testing.T) {
	all := v1.ToolPolicySpec{
		ToolChoice:          v1.ToolChoiceNone,
		MaxToolCallsPerTurn: n(1),
		Blocklist:           []string{"get"},
		MaxTotalToolCalls:   n(1),
		Allowlist:           []string{"pay"},
		Limits:              []v1.Limit{{MaxCalls: n(1), Per: v1.PerSession}, {MaxCalls: n(1), Per: v1.PerDay}},
	}
	tests := []struct {
		want   string
		before func(*v1.ToolPolicySpec) // removes the preceding rule
	}{
		{"tool_choice", func(*v1.ToolPolicySpec) {}},
		{"max_tool_calls_per_turn", func(s *v1.ToolPolicySpec) { s.ToolChoice = "" }},
		{"blocklist", func(s *v1.ToolPolicySpec) { s.MaxToolCallsPerTurn = nil }},
		{"max_total_tool_calls", func(s *v1.ToolPolicySpec) { s.Blocklist = nil }},
		{"allowlist", func(s *v1.ToolPolicySpec) { s.MaxTotalToolCalls = nil }},
		{"limits[0]", func(s *v1.ToolPolicySpec) { s.Allowlist = nil }},
		{"limits[1]", func(s *v1.ToolPolicySpec) { s.Limits[0].MaxCalls = n(5) }},
	}
	m := newCounters()
	req := Request{Session: "s"}
	// One call under limits of the same names fills the counters.
	fill := v1.ToolPolicySpec{MaxToolCallsPerTurn: n(1), MaxTotalToolCalls: n(1), Limits: slices.Clone(all.Limits)}
	if _, err := Compile([]*v1.ToolPolicy{named("p", fill)}).For(tool("get")).Admit(t.Context(), m, req); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		tt.before(&all)
		_, err := Compile([]*v1.ToolPolicy{named("p", all)}).For(tool("get")).Admit(t.Context(), m, req)
		var refused *v1.PolicyError
		if !errors.As(err, &refused) || refused.Rule != tt.want {
			t.Errorf("refused by %v, want rule %s", err, tt.want)
		}
	}
}

func TestTwoPolicies(t *testing.T) {
	block := v1.ToolPolicySpec{Blocklist: []string{"get"}}
	full := v1.ToolPolicySpec{MaxTotalToolCalls: n(0)}
	audit := func(s v1.ToolPolicySpec) v1.ToolPolicySpec { s.Mode = v1.PolicyAudit; return s }
	elsewhere := named("a", v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceNone})
	elsewhere.Metadata.Namespace = "prod"
	tests := []struct {
		name     string
		policies []*v1.ToolPolicy
		want     v1.PolicyDecision
	}{
		{"kinds before names", []*v1.ToolPolicy{named("a", full), named("b", block)}, v1.PolicyDecision{Decision: "deny", Rule: "blocklist", Policy: "b"}},
		{"names within a kind", []*v1.ToolPolicy{named("b", block), named("a", block)}, v1.PolicyDecision{Decision: "deny", Rule: "blocklist", Policy: "a"}},
		{"one refusal is enough", []*v1.ToolPolicy{named("a", v1.ToolPolicySpec{Allowlist: []string{"*"}}), named("b", full)}, v1.PolicyDecision{Decision: "deny", Rule: "max_total_tool_calls", Policy: "b"}},
		{"enforce wins over an earlier audit", []*v1.ToolPolicy{named("a", audit(block)), named("b", full)}, v1.PolicyDecision{Decision: "deny", Rule: "max_total_tool_calls", Policy: "b"}},
		{"the first audit is noted", []*v1.ToolPolicy{named("a", audit(full)), named("b", audit(block))}, v1.PolicyDecision{Decision: "audit", Rule: "blocklist", Policy: "b"}},
		{"other namespaces have no say", []*v1.ToolPolicy{elsewhere, named("b", audit(block))}, v1.PolicyDecision{Decision: "audit", Rule: "blocklist", Policy: "b"}},
		{"all allow", []*v1.ToolPolicy{named("a", v1.ToolPolicySpec{MaxTotalToolCalls: n(1)}), named("b", v1.ToolPolicySpec{Allowlist: []string{"get"}})}, v1.PolicyDecision{Decision: "allow"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, policies := range [][]*v1.ToolPolicy{tt.policies, {tt.policies[1], tt.policies[0]}} {
				adm, err := Compile(policies).For(tool("get")).Admit(t.Context(), newCounters(), Request{Session: "s"})
				if adm.Decision != tt.want || (err != nil) != (tt.want.Decision == v1.DecisionDeny) {
					t.Errorf("Admit = %+v, %v, want %+v", adm.Decision, err, tt.want)
				}
			}
		})
	}
}

func TestPolicyNameHasItsNamespace(t *testing.T) {
	p := named("p", v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceNone})
	p.Metadata.Namespace = "prod"
	_, err := Compile([]*v1.ToolPolicy{p}).For(Subject{Namespace: "prod", Name: "get"}).Admit(t.Context(), newCounters(), Request{})
	if err == nil || !strings.Contains(err.Error(), `refused by policy "prod/p"`) {
		t.Errorf("Admit: %v", err)
	}
}

// TestLoweredLimit checks a limit that was lowered below the current use.
func TestLoweredLimit(t *testing.T) {
	m, req := newCounters(), Request{Session: "s"}
	before := Compile([]*v1.ToolPolicy{named("p", v1.ToolPolicySpec{MaxTotalToolCalls: n(5)})}).For(tool("get"))
	for range 4 {
		if _, err := before.Admit(t.Context(), m, req); err != nil {
			t.Fatal(err)
		}
	}
	after := Compile([]*v1.ToolPolicy{named("p", v1.ToolPolicySpec{MaxTotalToolCalls: n(2)})}).For(tool("get"))
	_, err := after.Admit(t.Context(), m, req)
	var refused *v1.PolicyError
	if !errors.As(err, &refused) || refused.Limit != 2 || refused.Used != 4 {
		t.Fatalf("Admit: %+v, want limit 2 and used 4", err)
	}
	if want := "4 calls used this session, and the limit is 2"; refused.Message != want {
		t.Errorf("message %q, want %q", refused.Message, want)
	}
}

func TestAuditCountsAndNeverRefuses(t *testing.T) {
	spec := v1.ToolPolicySpec{MaxTotalToolCalls: n(2), Mode: v1.PolicyAudit, Limits: []v1.Limit{{MaxCalls: n(0), Per: v1.PerDay, Tools: []string{"pay"}}}}
	set, m, req := Compile([]*v1.ToolPolicy{named("p", spec)}), newCounters(), Request{Session: "s"}
	for i, want := range []v1.PolicyDecision{
		{Decision: "allow"}, {Decision: "allow"},
		{Decision: "audit", Rule: "max_total_tool_calls", Policy: "p"},
		{Decision: "audit", Rule: "max_total_tool_calls", Policy: "p"},
	} {
		if adm, err := set.For(tool("get")).Admit(t.Context(), m, req); err != nil || adm.Decision != want {
			t.Errorf("call %d: %+v, %v, want %+v", i, adm.Decision, err, want)
		}
	}
	want := v1.PolicyDecision{Decision: "audit", Rule: "limits[0]", Policy: "p"}
	if adm, err := set.For(tool("pay")).Admit(t.Context(), m, Request{}); err != nil || adm.Decision != want {
		t.Errorf("limit of 0: %+v, %v, want %+v", adm.Decision, err, want)
	}
	if b := set.For(tool("pay")).Blocked(); b != nil {
		t.Errorf("Blocked = %v, but audit blocks nothing", b)
	}
}

// TestRefusedCallUsesNothing checks that a refusal by name or by one full counter increases no counter of any policy.
func TestRefusedCallUsesNothing(t *testing.T) {
	policies := []*v1.ToolPolicy{
		named("a", v1.ToolPolicySpec{MaxTotalToolCalls: n(10), Limits: []v1.Limit{{MaxCalls: n(1), Per: v1.PerTurn}}}),
		named("b", v1.ToolPolicySpec{Allowlist: []string{"get"}}),
		named("c", v1.ToolPolicySpec{MaxTotalToolCalls: n(10), Mode: v1.PolicyAudit}),
	}
	set, m, req := Compile(policies), newCounters(), Request{Session: "s"}
	if _, err := set.For(tool("get")).Admit(t.Context(), m, req); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"get", "pay"} { // full, and not on the allowlist
		adm, err := set.For(tool(name)).Admit(t.Context(), m, req)
		if err == nil {
			t.Errorf("%s was admitted", name)
		}
		if err := adm.Release(t.Context()); err != nil { // has nothing to give back
			t.Error(err)
		}
	}
	e, err := set.For(tool("get")).Explain(t.Context(), m, Request{Session: "s", Turn: "2"})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range e.Verdicts {
		if v.Rule == "max_total_tool_calls" && *v.UsedBefore != 1 {
			t.Errorf("policy %s: %d used after one admitted and two refused calls, want 1", v.Policy, *v.UsedBefore)
		}
	}
}

func TestRelease(t *testing.T) {
	chain := Compile([]*v1.ToolPolicy{named("p", v1.ToolPolicySpec{MaxTotalToolCalls: n(1), Limits: []v1.Limit{{MaxCalls: n(2), Per: v1.PerDay}}})}).For(tool("get"))
	m, req := newCounters(), Request{Session: "s"}
	adm, err := chain.Admit(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Admit(t.Context(), m, req); err == nil {
		t.Fatal("a second call was admitted while the first holds the one place")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	adm.counters = heeding{m}
	if err := adm.Release(ended); err != nil {
		t.Fatalf("Release after the caller gave up: %v", err)
	}
	again, err := chain.Admit(t.Context(), m, req)
	if err != nil {
		t.Fatalf("after Release: %v", err)
	}
	if err := adm.Release(t.Context()); err != nil { // a second Release of the first call does nothing
		t.Fatal(err)
	}
	if _, err := chain.Admit(t.Context(), m, req); err == nil {
		t.Error("a second Release gave back what another call holds")
	}
	again.counters = failing{}
	if err := again.Release(t.Context()); !errors.Is(err, errCounters) || err.Error() != "release the reserved policy counts: disk is full" {
		t.Errorf("Release with failing counters: %v", err)
	}
}

// heeding has counters that, like a database, do nothing after ctx has ended.
type heeding struct{ Counters }

func (h heeding) Release(ctx context.Context, counters []v1.Counter) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return h.Counters.Release(ctx, counters)
}

// liar has counters that return fixed results.
type liar struct {
	Counters
	used []v1.Count
	full int
}

func (l liar) Reserve(context.Context, []v1.Counter) ([]v1.Count, int, error) {
	return l.used, l.full, nil
}
func (l liar) Read(context.Context, []v1.Counter) ([]v1.Count, error) { return l.used, nil }

func TestFailingCountersRefuse(t *testing.T) {
	counted := named("p", v1.ToolPolicySpec{MaxTotalToolCalls: n(1)})
	audited := named("p", v1.ToolPolicySpec{MaxTotalToolCalls: n(1), Mode: v1.PolicyAudit})
	blocked := named("p", v1.ToolPolicySpec{MaxToolCallsPerTurn: n(1), Blocklist: []string{"get"}})
	const prefix = `tool "get": refused, because the call could not be counted: `
	tests := []struct {
		name     string
		policy   *v1.ToolPolicy
		counters Counters
		want     string
	}{
		{"reserve fails", counted, failing{}, prefix + "disk is full"},
		{"in audit too", audited, failing{}, prefix + "disk is full"},
		{"read fails before a blocklist", blocked, failing{}, prefix + "disk is full"},
		{"too few counts", counted, liar{full: -1}, prefix + "counters answered with 0 counts and full counter -1 for 1 counters"},
		{"too few counts read", blocked, liar{}, prefix + "counters answered with 0 counts and full counter -1 for 1 counters"},
		{"full counter that is none", counted, liar{used: []v1.Count{{Used: 1}}, full: 1}, prefix + "counters answered with 1 counts and full counter 1 for 1 counters"},
		{"full counter without a limit", audited, liar{used: []v1.Count{{Used: 1}}, full: 0}, prefix + "counters answered with 1 counts and full counter 0 for 1 counters"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			adm, err := Compile([]*v1.ToolPolicy{tt.policy}).For(tool("get")).Admit(t.Context(), tt.counters, Request{Session: "s"})
			if err == nil || err.Error() != tt.want {
				t.Errorf("Admit: %v, want %s", err, tt.want)
			}
			if adm.Decision != (v1.PolicyDecision{Decision: v1.DecisionDeny}) {
				t.Errorf("decision %+v, want deny", adm.Decision)
			}
			if len(adm.reserved) != 0 {
				t.Errorf("reserved %v", adm.reserved)
			}
		})
	}
}

func TestBlocked(t *testing.T) {
	tests := []struct {
		name string
		spec v1.ToolPolicySpec
		rule string
	}{
		{"nothing", v1.ToolPolicySpec{MaxTotalToolCalls: n(1), Blocklist: []string{"pay"}, Allowlist: []string{"get"}}, ""},
		{"tool_choice", v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceNone}, "tool_choice"},
		{"blocklist after a count", v1.ToolPolicySpec{MaxToolCallsPerTurn: n(1), Blocklist: []string{"g*"}}, "blocklist"},
		{"allowlist", v1.ToolPolicySpec{Allowlist: []string{"pay"}}, "allowlist"},
		{"limit of 0", v1.ToolPolicySpec{MaxTotalToolCalls: n(0), Allowlist: []string{}}, "max_total_tool_calls"},
		{"limit of 0 on others", v1.ToolPolicySpec{Limits: []v1.Limit{{Tools: []string{"pay"}, MaxCalls: n(0), Per: v1.PerDay}}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rule := ""
			if b := Compile([]*v1.ToolPolicy{named("p", tt.spec)}).For(tool("get")).Blocked(); b != nil {
				rule = b.Rule
			}
			if rule != tt.rule {
				t.Errorf("blocked by %q, want %q", rule, tt.rule)
			}
		})
	}
}

// TestConcurrentCallsStayWithinTheLimits makes concurrent calls in one session and in many. Exactly the limit is
// admitted, and refused calls do not change the counters.
func TestConcurrentCallsStayWithinTheLimits(t *testing.T) {
	const callers, calls, perSession, perDay = 16, 50, 100, 250
	policies := []*v1.ToolPolicy{
		named("a", v1.ToolPolicySpec{MaxTotalToolCalls: n(perSession)}),
		named("b", v1.ToolPolicySpec{Limits: []v1.Limit{{MaxCalls: n(perDay), Per: v1.PerDay}, {MaxCalls: n(1 << 40), Per: v1.PerTurn}}}),
	}
	chain, m := Compile(policies).For(tool("get")), newCounters()
	sessions := []string{"a", "b", "c", "d"}
	admitted := make([]atomic.Int64, len(sessions))
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range calls {
				s := i % len(sessions)
				adm, err := chain.Admit(t.Context(), m, Request{Session: sessions[s]})
				var refused *v1.PolicyError
				switch {
				case err == nil && j%5 == 4: // the executor never ran
					if err := adm.Release(t.Context()); err != nil {
						t.Error(err)
					}
				case err == nil:
					admitted[s].Add(1)
				case !errors.As(err, &refused):
					t.Errorf("Admit: %v, want a refusal by policy", err)
				case refused.Used != refused.Limit:
					t.Errorf("refused at %d of %d", refused.Used, refused.Limit)
				}
			}
		})
	}
	wg.Wait()
	for s := range sessions { // released counts can be used again, until the limits are full
		for {
			if _, err := chain.Admit(t.Context(), m, Request{Session: sessions[s]}); err != nil {
				break
			}
			admitted[s].Add(1)
		}
	}
	total := int64(0)
	for s := range sessions {
		got := admitted[s].Load()
		if got > perSession {
			t.Errorf("session %s: %d calls admitted, want at most %d", sessions[s], got, perSession)
		}
		total += got
	}
	if total != perDay {
		t.Errorf("%d calls admitted in all, want exactly %d", total, perDay)
	}
}

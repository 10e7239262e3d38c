package policy

import (
	"errors"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

func TestRequireApproval(t *testing.T) {
	pay := v1.ToolPolicySpec{RequireApproval: []string{"pay-*"}}
	for _, tt := range []struct {
		name     string
		policies []*v1.ToolPolicy
		tool     string
		req      Request
		wait     string // the policy whose approval the call waits for
		timeout  time.Duration
		decision string
		explain  string
		rule     string
	}{
		{name: "a pattern fits", policies: []*v1.ToolPolicy{named("p", pay)}, tool: "pay-invoice", wait: "p", timeout: time.Hour, decision: "allow", explain: "pending", rule: "require_approval"},
		{name: "no pattern fits", policies: []*v1.ToolPolicy{named("p", pay)}, tool: "get", decision: "allow", explain: "allow"},
		{name: "the time of the policy", policies: []*v1.ToolPolicy{named("p", v1.ToolPolicySpec{RequireApproval: []string{"*"}, ApprovalTimeoutMS: 1500})}, tool: "get", wait: "p", timeout: 1500 * time.Millisecond, decision: "allow", explain: "pending", rule: "require_approval"},
		{name: "a negative time is the default", policies: []*v1.ToolPolicy{named("p", v1.ToolPolicySpec{RequireApproval: []string{"*"}, ApprovalTimeoutMS: -1})}, tool: "get", wait: "p", timeout: time.Hour, decision: "allow", explain: "pending", rule: "require_approval"},
		{name: "the first by name", policies: []*v1.ToolPolicy{named("b", pay), named("a", pay)}, tool: "pay-x", wait: "a", timeout: time.Hour, decision: "allow", explain: "pending", rule: "require_approval"},
		{name: "audit lets it through", policies: []*v1.ToolPolicy{named("p", audit(pay))}, tool: "pay-x", decision: "audit", explain: "audit", rule: "require_approval"},
		{name: "audit of one does not help against another", policies: []*v1.ToolPolicy{named("a", audit(pay)), named("b", pay)}, tool: "pay-x", wait: "b", timeout: time.Hour, decision: "audit", explain: "pending", rule: "require_approval"},
		{name: "a refusal comes before", policies: []*v1.ToolPolicy{named("p", v1.ToolPolicySpec{RequireApproval: []string{"*"}, Limits: []v1.Limit{{MaxCalls: n(0), Per: v1.PerDay}}})}, tool: "pay-x", decision: "deny", explain: "deny", rule: "limits[0]"},
		{name: "a refusal of a later policy too", policies: []*v1.ToolPolicy{named("a", pay), named("b", v1.ToolPolicySpec{Allowlist: []string{}})}, tool: "pay-x", decision: "deny", explain: "deny", rule: "allowlist"},
		{name: "of a principal", policies: []*v1.ToolPolicy{named("p", v1.ToolPolicySpec{RequireApproval: []string{"*"}, Match: &v1.Match{Principals: []string{"ann"}}})}, tool: "get", req: Request{Principal: "ann"}, wait: "p", timeout: time.Hour, decision: "allow", explain: "pending", rule: "require_approval"},
		{name: "of another principal", policies: []*v1.ToolPolicy{named("p", v1.ToolPolicySpec{RequireApproval: []string{"*"}, Match: &v1.Match{Principals: []string{"ann"}}})}, tool: "get", req: Request{Principal: "bob"}, explain: "allow"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chain, counters := Compile(tt.policies).For(tool(tt.tool)), newCounters()
			ex, err := chain.Explain(t.Context(), counters, tt.req)
			if err != nil || ex.Decision != tt.explain || ex.Rule != tt.rule {
				t.Errorf("Explain: %+v, %v", ex, err)
			}
			adm, err := chain.Admit(t.Context(), counters, tt.req)
			if adm.Decision.Decision != tt.decision || (err != nil) != (tt.decision == v1.DecisionDeny) {
				t.Fatalf("decision %+v, %v; want %s", adm.Decision, err, tt.decision)
			}
			if tt.wait == "" {
				if adm.Approval != nil {
					t.Fatalf("waits for %+v", adm.Approval)
				}
				return
			}
			a := adm.Approval
			if a == nil || a.Policy != tt.wait || a.Rule != "require_approval" || a.Timeout != tt.timeout {
				t.Fatalf("waits for %+v", a)
			}
			want := `tool "` + tt.tool + `": refused by policy "` + tt.wait + `", rule require_approval: no`
			if got := a.Refusal("no"); got.Error()[:len(want)] != want {
				t.Errorf("got %s", got)
			}
			if chain.Blocked() != nil || chain.BlockedFor(tt.req.Principal) != nil {
				t.Error("a tool that waits for approval is blocked")
			}
		})
	}
}

func TestMatchPrincipals(t *testing.T) {
	block := v1.ToolPolicySpec{Blocklist: []string{"pay"}, Match: &v1.Match{Principals: []string{"ann", "team-*"}}}
	once := v1.ToolPolicySpec{MaxTotalToolCalls: n(1), Match: &v1.Match{Principals: []string{"bob"}}}
	everyone := v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceNone, Match: &v1.Match{Principals: []string{"*"}}}
	for _, tt := range []struct {
		name      string
		policies  []*v1.ToolPolicy
		principal string
		calls     int
		want      string // the rule that refuses the last call
		blocked   bool
		unmatched string
	}{
		{name: "an exact name", policies: []*v1.ToolPolicy{named("p", block)}, principal: "ann", calls: 1, want: "blocklist", blocked: true},
		{name: "a pattern", policies: []*v1.ToolPolicy{named("p", block)}, principal: "team-x", calls: 1, want: "blocklist", blocked: true},
		{name: "another name", policies: []*v1.ToolPolicy{named("p", block)}, principal: "anna", calls: 1, unmatched: `match.principals is "ann", "team-*"; the caller is "anna"`},
		{name: "nobody", policies: []*v1.ToolPolicy{named("p", block)}, calls: 1, unmatched: `match.principals is "ann", "team-*"; the caller has no principal`},
		{name: "a star fits nobody", policies: []*v1.ToolPolicy{named("p", everyone)}, calls: 1, want: "tool_choice", blocked: true},
		{name: "counts of one", policies: []*v1.ToolPolicy{named("p", once)}, principal: "bob", calls: 2, want: "max_total_tool_calls"},
		{name: "counts of no other", policies: []*v1.ToolPolicy{named("p", once)}, principal: "ann", calls: 2, unmatched: `match.principals is "bob"; the caller is "ann"`},
		{name: "a rule for all comes after one for some", policies: []*v1.ToolPolicy{named("a", block), named("b", v1.ToolPolicySpec{Allowlist: []string{}})}, principal: "bob", calls: 1, want: "allowlist", blocked: true, unmatched: `match.principals is "ann", "team-*"; the caller is "bob"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chain, counters := Compile(tt.policies).For(tool("pay")), newCounters()
			req := Request{Session: "s", Principal: tt.principal}
			ex, err := chain.Explain(t.Context(), counters, req)
			if err != nil {
				t.Fatal(err)
			}
			reason := ""
			for _, u := range ex.Unmatched {
				reason = u.Reason
			}
			if reason != tt.unmatched {
				t.Errorf("unmatched because %q, want %q", reason, tt.unmatched)
			}
			for range tt.calls - 1 {
				if _, err := chain.Admit(t.Context(), counters, req); err != nil {
					t.Fatal(err)
				}
			}
			_, err = chain.Admit(t.Context(), counters, req)
			rule := ""
			if refused := (*v1.PolicyError)(nil); errors.As(err, &refused) {
				rule = refused.Rule
			}
			if rule != tt.want {
				t.Errorf("refused by %q (%v), want %q", rule, err, tt.want)
			}
			if got := chain.BlockedFor(tt.principal) != nil; got != tt.blocked {
				t.Errorf("blocked %v, want %v", got, tt.blocked)
			}
		})
	}
}

func TestAudience(t *testing.T) {
	match := func(spec v1.ToolPolicySpec, who ...string) v1.ToolPolicySpec {
		spec.Match = &v1.Match{Principals: who}
		return spec
	}
	none := v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceNone}
	for _, tt := range []struct {
		name     string
		policies []*v1.ToolPolicy
		want     string // result of String; "" for no audience
	}{
		{name: "no policy"},
		{name: "a rule for all", policies: []*v1.ToolPolicy{named("p", none)}},
		{name: "a rule for some", policies: []*v1.ToolPolicy{named("p", match(none, "ann", "b-*"))}, want: `["ann" "b-*"]`},
		{name: "in audit", policies: []*v1.ToolPolicy{named("p", audit(match(none, "ann")))}},
		{name: "counts hide nothing", policies: []*v1.ToolPolicy{named("p", match(v1.ToolPolicySpec{MaxTotalToolCalls: n(1)}, "ann"))}},
		{name: "one for some, one for all", policies: []*v1.ToolPolicy{named("p", match(none, "ann")), named("q", none)}},
		{name: "two for the same", policies: []*v1.ToolPolicy{named("p", match(none, "ann")), named("q", match(none, "ann"))}, want: `["ann"]`},
		{name: "two", policies: []*v1.ToolPolicy{named("p", match(none, "bob")), named("q", match(none, "ann"))}, want: `["ann"] ["bob"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := Compile(tt.policies).For(tool("pay")).Audience()
			if (a != nil) != (tt.want != "") || a != nil && a.String() != tt.want {
				t.Fatalf("got %v, want %q", a, tt.want)
			}
			if a != nil && (a.Sees("ann") || !a.Sees("carl")) {
				t.Errorf("ann: %v, carl: %v", a.Sees("ann"), a.Sees("carl"))
			}
		})
	}
}

func TestBudgets(t *testing.T) {
	spec := v1.ToolPolicySpec{MaxToolCallsPerTurn: n(3), MaxTotalToolCalls: n(5), Limits: []v1.Limit{{MaxCalls: n(2), Per: v1.PerHour}}}
	chain, counters := Compile([]*v1.ToolPolicy{named("p", spec), named("q", audit(v1.ToolPolicySpec{MaxTotalToolCalls: n(1)}))}).For(tool("pay")), newCounters()
	at := noon.Add(10 * time.Minute)
	reset := noon.Truncate(time.Hour).Add(time.Hour)
	check := func(what string, got []v1.Budget, used ...int64) {
		t.Helper()
		want := []v1.Budget{
			{Rule: "max_tool_calls_per_turn", Policy: "p", Limit: 3}, {Rule: "max_total_tool_calls", Policy: "p", Limit: 5}, {Rule: "limits[0]", Policy: "p", Limit: 2, ResetsAt: reset},
		}
		if len(used) == 1 { // counts of a session without a name are not kept
			want = want[2:]
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %+v", what, got)
		}
		for i, w := range want {
			w.Used, w.Remaining = used[i], w.Limit-used[i]
			if got[i] != w {
				t.Errorf("%s: %+v, want %+v", what, got[i], w)
			}
		}
	}
	req := Request{Session: "s", Turn: "1"}
	counters.now = at
	first, err := chain.Admit(t.Context(), counters, req)
	if err != nil {
		t.Fatal(err)
	}
	check("first", first.Budgets, 1, 1, 1)
	second, _ := chain.Admit(t.Context(), counters, Request{})
	check("no session", second.Budgets, 2)
	if second.Approval != nil {
		t.Error("waits for approval")
	}
	refused, err := chain.Admit(t.Context(), counters, req)
	if err == nil {
		t.Fatal("the hour allows two")
	}
	check("refused", refused.Budgets, 1, 1, 2)
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("released", first.Budgets, 0, 0, 0)
}

func audit(s v1.ToolPolicySpec) v1.ToolPolicySpec {
	s.Mode = v1.PolicyAudit
	return s
}

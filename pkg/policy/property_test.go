package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
	v1 "toolctl.dev/toolctl/api/v1"
)

var toolNames = []string{"get", "pay-a", "pay-b", "git__push"}

func patterns(t *rapid.T, label string) []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"get", "pay-*", "pay-a", "git__*", "*"}), 0, 3).Draw(t, label)
}

// drawPolicies draws up to three policies, some in audit, of every kind of rule.
func drawPolicies(t *rapid.T) []*v1.ToolPolicy {
	var policies []*v1.ToolPolicy
	for i := range rapid.IntRange(0, 3).Draw(t, "policies") {
		limit := func(label string) *int64 {
			if !rapid.Bool().Draw(t, "has "+label) {
				return nil
			}
			return n(rapid.Int64Range(0, 4).Draw(t, label))
		}
		s := v1.ToolPolicySpec{
			ToolChoice:          rapid.SampledFrom([]string{"", "", "", "auto", "required", "none"}).Draw(t, "tool_choice"),
			MaxToolCallsPerTurn: limit("per turn"),
			MaxTotalToolCalls:   limit("total"),
			Mode:                rapid.SampledFrom([]string{"", v1.PolicyEnforce, v1.PolicyAudit}).Draw(t, "mode"),
		}
		if rapid.IntRange(0, 3).Draw(t, "has blocklist") == 0 {
			s.Blocklist = patterns(t, "blocklist")
		}
		if rapid.IntRange(0, 3).Draw(t, "has allowlist") == 0 {
			s.Allowlist = patterns(t, "allowlist")
		}
		if rapid.IntRange(0, 3).Draw(t, "has match") == 0 {
			s.Match = &v1.Match{Tools: patterns(t, "match")}
		}
		if rapid.IntRange(0, 3).Draw(t, "has principals") == 0 {
			who := rapid.SliceOfN(rapid.SampledFrom([]string{"ann", "team-*", "*", "team-b"}), 0, 2).Draw(t, "principals")
			if s.Match == nil {
				s.Match = &v1.Match{}
			}
			s.Match.Principals = who
		}
		if rapid.IntRange(0, 3).Draw(t, "has approval") == 0 {
			s.RequireApproval = patterns(t, "approval")
		}
		for range rapid.IntRange(0, 2).Draw(t, "limits") {
			s.Limits = append(s.Limits, v1.Limit{
				Tools: patterns(t, "limit tools"), MaxCalls: n(rapid.Int64Range(0, 4).Draw(t, "max")), Per: rapid.SampledFrom(spans()).Draw(t, "per"),
				By: rapid.SampledFrom([][]string{nil, nil, {v1.BySession}, {v1.ByPrincipal}, {v1.ByTool}, {v1.ByAll}, {v1.ByTool, v1.ByPrincipal}}).Draw(t, "by"),
			})
		}
		policies = append(policies, named(fmt.Sprintf("p%d", i), s))
	}
	return policies
}

// model computes the decision of a policy set naively and without keys, according to the design: it searches the list
// of all counted calls.
type model struct {
	policies []*v1.ToolPolicy
	calls    []modelCall
	now      time.Time
}

type modelCall struct {
	tool string
	at   time.Time
	req  Request
}

func fits(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return p == tool || strings.HasSuffix(p, "*") && strings.HasPrefix(tool, p[:len(p)-1])
	})
}

// governs reports whether the policy matches a call.
func governs(p *v1.ToolPolicy, tool, principal string) bool {
	m := p.Spec.Match
	return m == nil || (len(m.Tools) == 0 || fits(m.Tools, tool)) && (len(m.Principals) == 0 || fits(m.Principals, principal))
}

// used counts the calls of the policy's tools in the span.
func (m *model) used(p *v1.ToolPolicy, tools []string, per string, by []string, called string, req Request) int64 {
	layout := map[string]string{v1.PerMinute: "2006-01-02 15:04", v1.PerHour: "2006-01-02 15", v1.PerDay: "2006-01-02"}[per]
	who := by
	if len(by) == 0 || len(by) == 1 && by[0] == v1.ByTool {
		who = []string{v1.ByAll}
		if layout == "" {
			who = []string{v1.BySession}
		}
	}
	same := func(c modelCall, b Request) bool {
		a := c.req
		ann := a.Principal == b.Principal
		switch {
		case slices.Contains(who, v1.BySession) && (a.Session == "" || a.Session != b.Session || !ann):
			return false
		case slices.Contains(who, v1.ByPrincipal) && !ann:
			return false
		case per == v1.PerTurn:
			return a.Turn == b.Turn && (a.Turn != "" || a.Session != "" && b.Session != "")
		}
		return c.at.UTC().Format(layout) == m.now.UTC().Format(layout)
	}
	var n int64
	for _, c := range m.calls {
		if governs(p, c.tool, c.req.Principal) && (len(tools) == 0 || fits(tools, c.tool)) && same(c, req) && (!slices.Contains(by, v1.ByTool) || c.tool == called) {
			n++
		}
	}
	return n
}

// decide returns the decision, the policy whose approval the call waits for, and, for a denied count, the used part.
func (m *model) decide(tool string, req Request) (d v1.PolicyDecision, approval string, limit, used int64) {
	governed, note := false, v1.PolicyDecision{Decision: v1.DecisionAllow}
	for kind := range 7 {
		for _, p := range m.policies {
			s := &p.Spec
			if !governs(p, tool, req.Principal) {
				continue
			}
			governed = true
			type broken struct {
				rule        string
				limit, used int64
			}
			var b []broken
			count := func(rule string, limit *int64, tools []string, per string, by ...string) {
				if limit != nil && (len(tools) == 0 || fits(tools, tool)) {
					if u := m.used(p, tools, per, by, tool, req); u >= *limit {
						b = append(b, broken{rule, *limit, u})
					}
				}
			}
			switch kind {
			case 0:
				if s.ToolChoice == v1.ToolChoiceNone {
					b = append(b, broken{rule: "tool_choice"})
				}
			case 1:
				count("max_tool_calls_per_turn", s.MaxToolCallsPerTurn, nil, v1.PerTurn)
			case 2:
				if fits(s.Blocklist, tool) {
					b = append(b, broken{rule: "blocklist"})
				}
			case 3:
				count("max_total_tool_calls", s.MaxTotalToolCalls, nil, v1.PerSession)
			case 4:
				if s.Allowlist != nil && !fits(s.Allowlist, tool) {
					b = append(b, broken{rule: "allowlist"})
				}
			case 5:
				for i, l := range s.Limits {
					count(fmt.Sprintf("limits[%d]", i), l.MaxCalls, l.Tools, l.Per, l.By...)
				}
			case 6:
				switch {
				case !fits(s.RequireApproval, tool):
				case s.Mode == v1.PolicyAudit:
					b = append(b, broken{rule: "require_approval"})
				case approval == "":
					approval = p.Metadata.Name
				}
			}
			switch {
			case len(b) == 0:
			case s.Mode != v1.PolicyAudit:
				return v1.PolicyDecision{Decision: v1.DecisionDeny, Rule: b[0].rule, Policy: p.Metadata.Name}, "", b[0].limit, b[0].used
			case note.Decision == v1.DecisionAllow:
				note = v1.PolicyDecision{Decision: v1.DecisionAudit, Rule: b[0].rule, Policy: p.Metadata.Name}
			}
		}
	}
	if !governed {
		return v1.PolicyDecision{}, "", 0, 0
	}
	return note, approval, 0, 0
}

// TestAdmitAgreesWithTheModel makes random calls and releases under random policies. Admit must decide as the model
// does, and Explain must predict the decision of Admit.
func TestAdmitAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{policies: drawPolicies(t)}
		set, counters, ctx := Compile(m.policies), newCounters(), context.Background()
		type held struct {
			adm  Admission
			call modelCall
		}
		var holds []held
		now := noon
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(holds) > 0 && rapid.IntRange(0, 4).Draw(t, "release") == 0 {
				i := rapid.IntRange(0, len(holds)-1).Draw(t, "which")
				if err := holds[i].adm.Release(ctx); err != nil {
					t.Fatal(err)
				}
				m.calls = slices.Delete(m.calls, i, i+1)
				holds = slices.Delete(holds, i, i+1)
				continue
			}
			now = now.Add(rapid.SampledFrom([]time.Duration{0, 0, 20 * time.Second, 20 * time.Minute, 9 * time.Hour}).Draw(t, "later"))
			m.now, counters.now = now, now
			call := modelCall{rapid.SampledFrom(toolNames).Draw(t, "tool"), now, Request{
				Session: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "session"),
				Turn:    rapid.SampledFrom([]string{"", "1"}).Draw(t, "turn"),

				Principal: rapid.SampledFrom([]string{"", "ann", "team-b"}).Draw(t, "principal"),
			}}
			chain := set.For(tool(call.tool))
			explained, err := chain.Explain(ctx, counters, call.req)
			if err != nil {
				t.Fatal(err)
			}
			want, approval, limit, used := m.decide(call.tool, call.req)
			adm, err := chain.Admit(ctx, counters, call.req)
			if adm.Decision != want {
				t.Fatalf("Admit of %+v = %+v (%v), the model says %+v", call, adm.Decision, err, want)
			}
			var refused *v1.PolicyError
			if denied := want.Decision == v1.DecisionDeny; denied != (err != nil) || denied && (!errors.As(err, &refused) || refused.Limit != limit || refused.Used != used) {
				t.Fatalf("Admit of %+v: %v, the model says %d of %d", call, err, used, limit)
			}
			switch {
			case (approval != "") != (adm.Approval != nil):
				t.Fatalf("Admit of %+v waits for %+v, the model says %q", call, adm.Approval, approval)
			case approval != "":
				if adm.Approval.Policy != approval {
					t.Fatalf("Admit of %+v waits for policy %q, the model says %q", call, adm.Approval.Policy, approval)
				}
				want = v1.PolicyDecision{Decision: v1.DecisionPending, Rule: "require_approval", Policy: approval}
			}
			for _, b := range adm.Budgets {
				if b.Remaining != max(0, b.Limit-b.Used) || err == nil && b.Used > b.Limit {
					t.Fatalf("Admit of %+v: %v, budget %+v", call, err, b)
				}
			}
			if want.Decision == "" {
				want.Decision = v1.DecisionAllow // Explain reports no policy as allow
			}
			if got := (v1.PolicyDecision{Decision: explained.Decision, Rule: explained.Rule, Policy: explained.Policy}); got != want {
				t.Fatalf("Explain of %+v says %+v, Admit did %+v", call, got, want)
			}
			if b := chain.BlockedFor(call.req.Principal); b != nil && err == nil {
				t.Fatalf("BlockedFor says %v, but the call was admitted", b)
			}
			if chain.Blocked() != nil && chain.BlockedFor(call.req.Principal) == nil {
				t.Fatal("Blocked for all, but not for one")
			}
			if sees := chain.Audience() == nil || chain.Audience().Sees(call.req.Principal); chain.Blocked() == nil && sees != (chain.BlockedFor(call.req.Principal) == nil) {
				t.Fatalf("the audience %v says %v", chain.Audience(), sees)
			}
			if err == nil {
				m.calls = append(m.calls, call)
				holds = append(holds, held{adm, call})
			}
			after, err := chain.Explain(ctx, counters, call.req)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range explained.Verdicts {
				if approval != "" {
					break // Explain does not count a pending call
				}
				if v.UsedAfter != nil && (call.req.Session != "") && *after.Verdicts[i].UsedBefore != *v.UsedAfter {
					t.Fatalf("rule %s: %d used after the call, Explain said %d", v.Rule, *after.Verdicts[i].UsedBefore, *v.UsedAfter)
				}
			}
		}
		for i := range holds {
			if err := holds[i].adm.Release(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for _, h := range holds {
			e, err := set.For(tool(h.call.tool)).Explain(ctx, counters, h.call.req)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range e.Verdicts {
				if v.UsedBefore != nil && *v.UsedBefore != 0 {
					t.Fatalf("all was given back, and %d are left of rule %s", *v.UsedBefore, v.Rule)
				}
			}
		}
	})
}

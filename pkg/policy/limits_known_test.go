package policy_test

import (
	"context"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

func careful(limits ...v1.Limit) *v1.ToolPolicy {
	return &v1.ToolPolicy{Header: v1.Header{Metadata: v1.Metadata{Name: "careful"}}, Spec: v1.ToolPolicySpec{Limits: limits}}
}

// TestALimitIsKnownByItsNameOrContent checks that an edit keeps the count of a limit, or that Abandoned reports it. It
// makes two calls under the first policy, and a third under the second.
func TestALimitIsKnownByItsNameOrContent(t *testing.T) {
	pay := v1.Limit{Tools: []string{"pay"}, MaxCalls: limit(2), Per: v1.PerSession}
	with := func(l v1.Limit, change func(*v1.Limit)) v1.Limit { change(&l); return l }
	named := with(pay, func(l *v1.Limit) { l.Name = "payments" })
	loose := with(pay, func(l *v1.Limit) { l.MaxCalls = limit(100) })
	get := v1.Limit{Tools: []string{"get"}, MaxCalls: limit(1), Per: v1.PerSession}
	both := v1.Limit{Tools: []string{"pay", "get"}, MaxCalls: limit(2), Per: v1.PerSession}
	for _, tc := range []struct {
		name          string
		before, after []v1.Limit
		passes        bool   // the third call passes
		abandoned     string // part of the sentence
	}{
		{name: "the same", before: []v1.Limit{pay}, after: []v1.Limit{pay}},
		{name: "one inserted above", before: []v1.Limit{pay}, after: []v1.Limit{get, pay}},
		{name: "a looser one of the same calls above", before: []v1.Limit{pay}, after: []v1.Limit{loose, pay}},
		{name: "a looser one of the same calls below", before: []v1.Limit{pay}, after: []v1.Limit{pay, loose}},
		{name: "the one above removed", before: []v1.Limit{get, pay}, after: []v1.Limit{pay}, abandoned: `limits[0] (calls of "get" this session)`},
		{name: "reordered", before: []v1.Limit{get, pay}, after: []v1.Limit{pay, get}},
		{name: "tools in another order, and twice", before: []v1.Limit{both}, after: []v1.Limit{with(both, func(l *v1.Limit) { l.Tools = []string{"get", "pay", "get"} })}},
		{name: "a lower max_calls", before: []v1.Limit{pay}, after: []v1.Limit{with(pay, func(l *v1.Limit) { l.MaxCalls = limit(1) })}},
		{name: "a higher max_calls keeps the count", before: []v1.Limit{pay}, after: []v1.Limit{with(pay, func(l *v1.Limit) { l.MaxCalls = limit(3) })}, passes: true},
		{name: "by written as it is by default", before: []v1.Limit{pay}, after: []v1.Limit{with(pay, func(l *v1.Limit) { l.By = []string{v1.BySession} })}},
		{name: "other tools", before: []v1.Limit{pay}, after: []v1.Limit{both}, passes: true, abandoned: `limits[0] (calls of "pay" this session)`},
		{name: "other tools under a name", before: []v1.Limit{named}, after: []v1.Limit{with(named, func(l *v1.Limit) { l.Tools = both.Tools })}},
		{name: "a new name", before: []v1.Limit{named}, after: []v1.Limit{with(named, func(l *v1.Limit) { l.Name = "other" })}, passes: true, abandoned: `limits[0] "payments" (calls of "pay" this session)`},
		{name: "another span under a name", before: []v1.Limit{named}, after: []v1.Limit{with(named, func(l *v1.Limit) { l.Per = v1.PerDay })}, passes: true, abandoned: `"payments"`},
		{name: "counted by something else", before: []v1.Limit{named}, after: []v1.Limit{with(named, func(l *v1.Limit) { l.By = []string{v1.ByPrincipal} })}, passes: true, abandoned: `"payments"`},
		{name: "removed", before: []v1.Limit{pay}, passes: true, abandoned: "limits[0]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, after, counters := careful(tc.before...), careful(tc.after...), policy.NewMemoryCounters(nil)
			call := func(p *v1.ToolPolicy) error {
				_, err := policy.Compile([]*v1.ToolPolicy{p}).For(policy.Subject{Namespace: "default", Name: "pay"}).Admit(t.Context(), counters, policy.Request{Session: "s", Principal: "ann"})
				return err
			}
			for range 2 {
				if err := call(before); err != nil {
					t.Fatal(err)
				}
			}
			if err := call(after); (err == nil) != tc.passes {
				t.Errorf("the third call: %v, want it to pass: %v", err, tc.passes)
			}
			said := strings.Join(policy.Abandoned(before, after), "; ")
			if (said == "") != (tc.abandoned == "") || !strings.Contains(said, tc.abandoned) {
				t.Errorf("abandoned: %q, want %q", said, tc.abandoned)
			}
		})
	}
	if got := policy.Abandoned(careful(pay), nil); len(got) != 1 {
		t.Errorf("a policy that goes: %q", got)
	}
	if got := policy.Abandoned(nil, careful(pay)); got != nil {
		t.Errorf("a policy that comes: %q", got)
	}
}

// TestLimitBy checks whose calls are counted together.
func TestLimitBy(t *testing.T) {
	type call struct{ tool, principal, session, turn string }
	for _, tc := range []struct {
		name   string
		per    string
		by     []string
		calls  []call // all but the last call pass; the limit is 1
		passes bool   // the last call passes
	}{
		{name: "ann's calls are not bob's", per: v1.PerHour, by: []string{v1.ByPrincipal}, calls: []call{{"a", "ann", "s", ""}, {"a", "bob", "s", ""}}, passes: true},
		{name: "a new session is the same person", per: v1.PerHour, by: []string{v1.ByPrincipal}, calls: []call{{"a", "ann", "s", ""}, {"a", "ann", "t", ""}}},
		{name: "without a session too", per: v1.PerHour, by: []string{v1.ByPrincipal}, calls: []call{{"a", "ann", "s", ""}, {"a", "ann", "", ""}}},
		{name: "all sessions of a person are one", per: v1.PerSession, by: []string{v1.ByPrincipal}, calls: []call{{"a", "ann", "s", ""}, {"b", "ann", "t", ""}}},
		{name: "callers without a name are one", per: v1.PerHour, by: []string{v1.ByPrincipal}, calls: []call{{"a", "", "s", ""}, {"a", "", "t", ""}}},
		{name: "a session of the same name is not another principal's", per: v1.PerSession, calls: []call{{"a", "ann", "s", ""}, {"a", "bob", "s", ""}}, passes: true},
		{name: "an hour counts everybody", per: v1.PerHour, calls: []call{{"a", "ann", "s", ""}, {"a", "bob", "t", ""}}},
		{name: "an hour of a session", per: v1.PerHour, by: []string{v1.BySession}, calls: []call{{"a", "ann", "s", ""}, {"a", "ann", "t", ""}}, passes: true},
		{name: "an hour of a session, again", per: v1.PerHour, by: []string{v1.BySession}, calls: []call{{"a", "ann", "s", "1"}, {"b", "ann", "s", "2"}}},
		{name: "each tool", per: v1.PerSession, by: []string{v1.ByTool}, calls: []call{{"a", "ann", "s", ""}, {"b", "ann", "s", ""}}, passes: true},
		{name: "each tool, again", per: v1.PerSession, by: []string{v1.ByTool}, calls: []call{{"a", "ann", "s", ""}, {"b", "ann", "s", ""}, {"a", "ann", "s", ""}}},
		{name: "each tool of an hour, of everybody", per: v1.PerHour, by: []string{v1.ByTool}, calls: []call{{"a", "ann", "s", ""}, {"a", "bob", "t", ""}}},
		{name: "each tool of each principal", per: v1.PerHour, by: []string{v1.ByPrincipal, v1.ByTool}, calls: []call{{"a", "ann", "s", ""}, {"b", "ann", "s", ""}, {"a", "bob", "s", ""}}, passes: true},
		{name: "each tool of each principal, again", per: v1.PerHour, by: []string{v1.ByTool, v1.ByPrincipal}, calls: []call{{"a", "ann", "s", ""}, {"a", "ann", "t", "2"}}},
		{name: "all sessions of all", per: v1.PerSession, by: []string{v1.ByAll}, calls: []call{{"a", "ann", "s", ""}, {"b", "bob", "t", ""}}},
		{name: "two tools that call one tool of a server", per: v1.PerSession, by: []string{v1.ByTool}, calls: []call{{"git__push", "ann", "s", ""}, {"mine", "ann", "s", ""}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := careful(v1.Limit{MaxCalls: limit(1), Per: tc.per, By: tc.by})
			if fs := p.Spec.Limits[0]; fs.By != nil && len(p.Validate()) > 2 { // apiVersion and kind are always missing
				t.Fatal(p.Validate())
			}
			set, counters := policy.Compile([]*v1.ToolPolicy{p}), policy.NewMemoryCounters(nil)
			var err error
			for i, c := range tc.calls {
				if err != nil {
					t.Fatalf("call %d: %v", i-1, err)
				}
				s := policy.Subject{Namespace: "default", Name: c.tool}
				if c.tool == "git__push" || c.tool == "mine" {
					s.Server, s.Remote = "git", "push"
				}
				_, err = set.For(s).Admit(context.Background(), counters, policy.Request{Session: c.session, Turn: c.turn, Principal: c.principal})
			}
			if (err == nil) != tc.passes {
				t.Errorf("the last call: %v, want it to pass: %v", err, tc.passes)
			}
		})
	}
}

// TestNames checks that a refusing rule matches every name of a tool, and that an allowing rule matches only names
// that identify the tool.
func TestNames(t *testing.T) {
	push := policy.Subject{Namespace: "default", Name: "mine", Server: "git", Remote: "push", Bare: true}
	shared := push
	shared.Bare = false
	dotted := policy.Subject{Namespace: "default", Name: "weather.get"}
	for _, tc := range []struct {
		tool             policy.Subject
		pattern          string
		blocked, allowed bool
	}{
		{push, "mine", true, true}, {push, "default/mine", true, true}, {push, "git__push", true, true}, {push, "git.push", true, true},
		{push, "mcp__git__push", true, true}, {push, "default/git__push", true, true}, {push, "default/mcp__git__push", true, true}, {push, "git__*", true, true},
		{push, "mcp__*", true, true}, {push, "default/*", true, true}, {push, "push", true, true}, {push, "default/push", true, false}, {push, "default__mine", true, false},
		{push, "pu*", true, false}, {shared, "push", true, false}, {push, "Push", false, false}, {push, "GIT__push", false, false}, {push, "git__pull", false, false}, {push, "other/mine", false, false},
		{dotted, "weather_get", true, false}, {dotted, "default__weather_get", true, false}, {dotted, "weather.get", true, true}, {dotted, "git.get", false, false},
	} {
		for _, rule := range []struct {
			name string
			spec v1.ToolPolicySpec
			want bool // the call is refused or held
		}{
			{"blocklist", v1.ToolPolicySpec{Blocklist: []string{tc.pattern}}, tc.blocked},
			{"require_approval", v1.ToolPolicySpec{RequireApproval: []string{tc.pattern}}, tc.blocked},
			{"limits", v1.ToolPolicySpec{Limits: []v1.Limit{{Tools: []string{tc.pattern}, MaxCalls: limit(0), Per: v1.PerDay}}}, tc.blocked},
			{"match", v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceNone, Match: &v1.Match{Tools: []string{tc.pattern}}}, tc.blocked},
			{"allowlist", v1.ToolPolicySpec{Allowlist: []string{tc.pattern}}, !tc.allowed},
		} {
			p := &v1.ToolPolicy{Header: v1.Header{Metadata: v1.Metadata{Name: "p"}}, Spec: rule.spec}
			chain := policy.Compile([]*v1.ToolPolicy{p}).For(tc.tool)
			adm, err := chain.Admit(t.Context(), policy.NewMemoryCounters(nil), policy.Request{})
			if got := err != nil || adm.Approval != nil; got != rule.want {
				t.Errorf("%s %q of %q (server %q, bare %v): refused %v, want %v", rule.name, tc.pattern, tc.tool.Name, tc.tool.Server, tc.tool.Bare, got, rule.want)
			}
		}
	}
}

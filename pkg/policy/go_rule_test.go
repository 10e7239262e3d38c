package policy

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

// atLeast refuses calls whose argument n is below the value of the rule.
var atLeast = Rule{
	Name: "least",
	Compile: func(value json.RawMessage) (Judge, error) {
		var bound int
		if err := json.Unmarshal(value, &bound); err != nil {
			return nil, err
		}
		return func(_ context.Context, s Subject, req Request) (bool, string, error) {
			var args struct{ N int }
			if err := json.Unmarshal(req.Args, &args); err != nil {
				return false, "", err
			}
			switch {
			case args.N == 13:
				panic("ouch")
			case args.N < bound:
				return false, s.Name + " wants more", nil
			}
			return true, "it is enough", nil
		}, nil
	},
}

func goPolicy(name, mode, value string) *v1.ToolPolicy {
	two := int64(2)
	return &v1.ToolPolicy{
		Header: v1.Header{Kind: v1.KindToolPolicy, Metadata: v1.Metadata{Name: name}},
		Spec: v1.ToolPolicySpec{Mode: mode, MaxTotalToolCalls: &two, RequireApproval: []string{"wire"},
			Extensions: v1.Extensions{"least": json.RawMessage(value)}},
	}
}

func TestGoRule(t *testing.T) {
	for _, tt := range []struct {
		name, mode, value, tool string
		args                    []string // arguments of the calls, in order
		want                    []string // the rule that refuses, with its message, or the decision
	}{
		{"refuses and uses up nothing", "", "5", "pay", []string{"1", "2", "3", "7", "8", "9"},
			[]string{"least: pay wants more", "least: pay wants more", "least: pay wants more", "allow", "allow", "max_total_tool_calls: 2 of 2 calls used this session"}},
		{"fails", "", "5", "pay", []string{`"x"`}, []string{"least: the rule failed: json: cannot unmarshal"}},
		{"panics", "", "5", "pay", []string{"13"}, []string{"least: the rule panicked: ouch"}},
		{"is broken", "", `"five"`, "pay", []string{"7"}, []string{"least: the rule is broken: json: cannot unmarshal"}},
		{"is audited", "audit", "5", "pay", []string{"1", "7"}, []string{"audit least", "allow"}},
		{"before approval", "", "5", "wire", []string{"1", "7"}, []string{"least: wire wants more", "pending"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chain := Compile([]*v1.ToolPolicy{goPolicy("p", tt.mode, tt.value)}, atLeast).For(Subject{Namespace: "default", Name: tt.tool})
			counters := newCounters()
			for i, n := range tt.args {
				req := Request{Session: "s", Args: json.RawMessage(`{"n":` + n + `}`)}
				ex, err := chain.Explain(t.Context(), counters, req)
				if err != nil {
					t.Fatal(err)
				}
				adm, err := chain.Admit(t.Context(), counters, req)
				var refused *v1.PolicyError
				got := strings.TrimSpace(adm.Decision.Decision + " " + adm.Decision.Rule)
				switch {
				case errors.As(err, &refused):
					got = refused.Rule + ": " + refused.Message
				case err != nil:
					t.Fatal(err)
				case adm.Approval != nil:
					got = v1.DecisionPending
				}
				if !strings.HasPrefix(got, tt.want[i]) {
					t.Errorf("call %d: got %q, want %q", i, got, tt.want[i])
				}
				if refused != nil && (ex.Decision != v1.DecisionDeny || ex.Rule != refused.Rule) {
					t.Errorf("call %d: the explanation says %s by %q", i, ex.Decision, ex.Rule)
				}
			}
		})
	}
}

func TestARuleThatIsNotRegisteredRefuses(t *testing.T) {
	chain := Compile([]*v1.ToolPolicy{goPolicy("p", "", "0")}).For(Subject{Namespace: "default", Name: "pay"})
	if err := chain.Blocked(); err == nil || err.Rule != "least" || err.Message != `this program has no rule "least"` {
		t.Errorf("got %v", err)
	}
}

func TestListsOfRules(t *testing.T) {
	want := []string{"tool_choice", "max_tool_calls_per_turn", "blocklist", "max_total_tool_calls", "allowlist", "limits", "least", "require_approval"}
	if got := RuleNames(atLeast); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	three := int64(3)
	spec := &v1.ToolPolicySpec{ToolChoice: "auto", Limits: []v1.Limit{{MaxCalls: &three, Per: "session"}, {}},
		RequireApproval: []string{"*"}, Extensions: v1.Extensions{"least": json.RawMessage("1")}}
	if got, want := RulesOf(spec), []string{"limits[0]", "limits[1]", "least", "require_approval"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestGoRuleOfAnOverlay checks that a rule written in Go also applies in the policy of a prompt.
func TestGoRuleOfAnOverlay(t *testing.T) {
	set := Compile(nil, atLeast)
	o := NewOverlay(&v1.Header{Metadata: v1.Metadata{Name: "pack"}}, goPolicy("p", "", "5").Spec)
	chain := o.Over(set.For(Subject{Namespace: "default", Name: "pay"}))
	_, err := chain.Admit(t.Context(), newCounters(), Request{Session: "s", Args: json.RawMessage(`{"n":1}`)})
	var refused *v1.PolicyError
	if !errors.As(err, &refused) || refused.Policy != "prompt/pack" || refused.Rule != "least" {
		t.Errorf("got %v", err)
	}
}

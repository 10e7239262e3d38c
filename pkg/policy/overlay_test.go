package policy_test

import (
	"context"
	"errors"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

func limit(n int64) *int64 { return &n }

func TestOverlay(t *testing.T) {
	manifest := &v1.ToolPolicy{Header: v1.Header{Metadata: v1.Metadata{Name: "house"}}, Spec: v1.ToolPolicySpec{MaxTotalToolCalls: limit(3), Blocklist: []string{"drop-*"}}}
	set := policy.Compile([]*v1.ToolPolicy{manifest})
	chain := func(namespace, name string) *policy.Chain {
		return set.For(policy.Subject{Namespace: namespace, Name: name})
	}
	prompt := &v1.Header{Metadata: v1.Metadata{Name: "advice"}, Source: v1.Source{File: "p.yaml", Line: 3}}
	for _, tc := range []struct {
		name      string
		spec      v1.ToolPolicySpec
		calls     [][2]string // namespace and name
		refused   string      // rule that refuses the last call; empty if the call passes
		requires  bool
		unblocked bool
	}{
		{name: "nothing", calls: [][2]string{{"default", "get"}}, unblocked: true},
		{name: "the set's rules stay", calls: [][2]string{{"default", "drop-all"}}, refused: `tool "drop-all": refused by policy "house", rule blocklist: on the blocklist as "drop-*"`},
		{name: "its own rules count", spec: v1.ToolPolicySpec{Blocklist: []string{"get"}}, calls: [][2]string{{"default", "get"}},
			refused: `tool "get": refused by policy "prompt/advice", rule blocklist: on the blocklist as "get" (p.yaml:3)`},
		{name: "in every namespace", spec: v1.ToolPolicySpec{Blocklist: []string{"get"}}, calls: [][2]string{{"other", "get"}},
			refused: `tool "get": refused by policy "prompt/advice", rule blocklist: on the blocklist as "get" (p.yaml:3)`},
		{name: "namespaces are counted together", spec: v1.ToolPolicySpec{MaxTotalToolCalls: limit(2)}, calls: [][2]string{{"default", "get"}, {"other", "put"}, {"third", "get"}},
			refused: `tool "get": refused by policy "prompt/advice", rule max_total_tool_calls: 2 of 2 calls used this session (p.yaml:3)`, unblocked: true},
		{name: "both count", spec: v1.ToolPolicySpec{MaxTotalToolCalls: limit(9)}, calls: [][2]string{{"default", "a"}, {"default", "a"}, {"default", "a"}, {"default", "a"}},
			refused: `tool "a": refused by policy "house", rule max_total_tool_calls: 3 of 3 calls used this session`, unblocked: true},
		{name: "required", spec: v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceRequired}, calls: [][2]string{{"default", "get"}}, requires: true, unblocked: true},
		{name: "required in audit asks nothing", spec: v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceRequired, Mode: v1.PolicyAudit}, calls: [][2]string{{"default", "get"}}, unblocked: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := policy.NewOverlay(prompt, tc.spec)
			ctx := policy.WithOverlay(t.Context(), o)
			counters := policy.NewMemoryCounters(nil)
			var err error
			var last *policy.Chain
			for i, c := range tc.calls {
				if err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				last = policy.Over(ctx, chain(c[0], c[1]))
				_, err = last.Admit(ctx, counters, policy.Request{Session: "s"})
			}
			got := ""
			if err != nil {
				if !errors.As(err, new(*v1.PolicyError)) {
					t.Fatalf("%T, want a PolicyError", err)
				}
				got = err.Error()
			}
			if got != tc.refused {
				t.Errorf("the last call: %q\nwant %q", got, tc.refused)
			}
			if last.Requires("") != tc.requires || (last.Blocked() == nil) != tc.unblocked {
				t.Errorf("requires %v, blocked %v", last.Requires(""), last.Blocked())
			}
		})
	}
	t.Run("without one the chain is the same", func(t *testing.T) {
		c := chain("default", "get")
		if policy.Over(context.Background(), c) != c || (*policy.Overlay)(nil).Over(c) != c {
			t.Error("the chain changed")
		}
	})
	t.Run("joined once", func(t *testing.T) {
		o, c := policy.NewOverlay(prompt, v1.ToolPolicySpec{}), chain("default", "get")
		if first := o.Over(c); o.Over(c) != first {
			t.Error("the chain was joined twice")
		}
	})
}

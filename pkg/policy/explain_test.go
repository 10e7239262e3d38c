package policy

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "toolctl.dev/toolctl/api/v1"
)

// TestExplainJSON checks the JSON that `toolctl policy explain -o json` prints.
func TestExplainJSON(t *testing.T) {
	elsewhere := named("far", v1.ToolPolicySpec{ToolChoice: v1.ToolChoiceNone})
	elsewhere.Metadata.Namespace = "prod"
	policies := []*v1.ToolPolicy{
		named("careful", v1.ToolPolicySpec{
			ToolChoice: v1.ToolChoiceAuto, Blocklist: []string{"delete-*"}, MaxTotalToolCalls: n(2),
			Limits: []v1.Limit{{Tools: []string{"pay-*"}, MaxCalls: n(1), Per: v1.PerMinute}},
		}),
		named("watch", v1.ToolPolicySpec{Allowlist: []string{"list-*"}, Mode: v1.PolicyAudit}),
		named("other", v1.ToolPolicySpec{Match: &v1.Match{Tools: []string{"x"}}}),
		named("plain", v1.ToolPolicySpec{}),
		elsewhere,
	}
	const want = `{
  "tool": "get",
  "namespace": "default",
  "decision": "audit",
  "rule": "allowlist",
  "policy": "watch",
  "matched": [
    "careful",
    "plain",
    "watch"
  ],
  "verdicts": [
    {
      "policy": "careful",
      "rule": "tool_choice",
      "verdict": "allow",
      "message": "tool_choice is auto",
      "source": {
        "file": "careful.yaml",
        "line": 10,
        "column": 3
      }
    },
    {
      "policy": "careful",
      "rule": "blocklist",
      "verdict": "allow",
      "message": "not on the blocklist",
      "source": {
        "file": "careful.yaml",
        "line": 12,
        "column": 3
      }
    },
    {
      "policy": "careful",
      "rule": "max_total_tool_calls",
      "verdict": "allow",
      "message": "1 of 2 calls used this session",
      "limit": 2,
      "used_before": 1,
      "used_after": 2,
      "source": {
        "file": "careful.yaml",
        "line": 13,
        "column": 3
      }
    },
    {
      "policy": "watch",
      "rule": "allowlist",
      "verdict": "audit",
      "message": "not on the allowlist (\"list-*\")",
      "source": {
        "file": "watch.yaml",
        "line": 14,
        "column": 3
      }
    },
    {
      "policy": "careful",
      "rule": "limits[0]",
      "verdict": "not_asked",
      "message": "counts only calls of \"pay-*\"",
      "source": {
        "file": "careful.yaml",
        "line": 16,
        "column": 3
      }
    }
  ],
  "unmatched": [
    {
      "policy": "other",
      "reason": "match.tools is \"x\""
    },
    {
      "policy": "prod/far",
      "reason": "governs the tools of namespace \"prod\"; this tool is in namespace \"default\""
    }
  ]
}`
	chain, m, req := Compile(policies).For(tool("get")), newCounters(), Request{Session: "s"}
	if _, err := chain.Admit(t.Context(), m, req); err != nil {
		t.Fatal(err)
	}
	for range 2 { // Explain changes nothing
		e, err := chain.Explain(t.Context(), m, req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.MarshalIndent(e, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("explanation (-want +got):\n%s", diff)
		}
	}
}

func TestExplainVerdicts(t *testing.T) {
	type brief struct {
		Rule, Verdict string
		Before, After int64 // -1 means no numbers
	}
	tests := []struct {
		name     string
		spec     v1.ToolPolicySpec
		session  string
		decision string
		want     []brief
	}{
		{
			name: "a refusal by name uses nothing", session: "s", decision: "deny",
			spec: v1.ToolPolicySpec{MaxToolCallsPerTurn: n(5), Blocklist: []string{"get"}, MaxTotalToolCalls: n(5)},
			want: []brief{{"max_tool_calls_per_turn", "allow", 1, 1}, {"blocklist", "deny", -1, -1}, {"max_total_tool_calls", "allow", 1, 1}},
		},
		{
			name: "rules after the first refusal are asked too", session: "s", decision: "deny",
			spec: v1.ToolPolicySpec{MaxToolCallsPerTurn: n(1), Allowlist: []string{}},
			want: []brief{{"max_tool_calls_per_turn", "deny", 1, 1}, {"allowlist", "deny", -1, -1}},
		},
		{
			name: "audit counts beyond the limit", session: "s", decision: "audit",
			spec: v1.ToolPolicySpec{MaxTotalToolCalls: n(1), Mode: v1.PolicyAudit},
			want: []brief{{"max_total_tool_calls", "audit", 1, 2}},
		},
		{
			name: "a session of its own starts at 0", decision: "allow",
			spec: v1.ToolPolicySpec{MaxTotalToolCalls: n(1), Limits: []v1.Limit{{MaxCalls: n(2), Per: v1.PerDay}}},
			want: []brief{{"max_total_tool_calls", "allow", 0, 1}, {"limits[0]", "allow", 1, 2}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newCounters()
			fill := v1.ToolPolicySpec{MaxToolCallsPerTurn: n(9), MaxTotalToolCalls: n(9), Limits: tt.spec.Limits}
			if _, err := Compile([]*v1.ToolPolicy{named("p", fill)}).For(tool("get")).Admit(t.Context(), m, Request{Session: "s"}); err != nil {
				t.Fatal(err)
			}
			e, err := Compile([]*v1.ToolPolicy{named("p", tt.spec)}).For(tool("get")).Explain(t.Context(), m, Request{Session: tt.session})
			if err != nil {
				t.Fatal(err)
			}
			if e.Decision != tt.decision {
				t.Errorf("decision %q, want %q", e.Decision, tt.decision)
			}
			var got []brief
			for _, v := range e.Verdicts {
				b := brief{v.Rule, v.Verdict, -1, -1}
				if v.UsedBefore != nil {
					b.Before, b.After = *v.UsedBefore, *v.UsedAfter
				}
				got = append(got, b)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainWithFailingCounters(t *testing.T) {
	chain := Compile([]*v1.ToolPolicy{named("p", v1.ToolPolicySpec{MaxTotalToolCalls: n(1)})}).For(tool("get"))
	for _, tt := range []struct {
		name     string
		counters Counters
		want     string
	}{
		{"read fails", failing{}, `tool "get": read the counters of its policies: disk is full`},
		{"too few counts", liar{}, `tool "get": read the counters of its policies: counters answered with 0 counts for 1 counters`},
	} {
		if _, err := chain.Explain(t.Context(), tt.counters, Request{Session: "s"}); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	if _, err := chain.Explain(t.Context(), failing{}, Request{Session: "s"}); !errors.Is(err, errCounters) {
		t.Errorf("the cause is lost: %v", err)
	}
}

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/policy"
)

func newPolicyCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "policy",
		Short:   "Explain and simulate policy decisions",
		Long:    "Explain and simulate the decisions of ToolPolicy manifests without making calls.",
		Example: "  toolctl policy explain pay-invoice -a amount=10 --session chat-7",
	}, newPolicyExplainCmd(a), newPolicySimulateCmd(a))
}

func newPolicyExplainCmd(a *app) *cobra.Command {
	var verb action.Call
	cmd := &cobra.Command{
		Use:   "explain NAME [-a key=value]...",
		Short: "Print every rule in order with its verdict and counters",
		Long: `Print every rule that applies to a call of the tool, in order of evaluation, with its
verdict and its counters before and after. toolctl makes no call and counts nothing. The
exit code is that of the real call: 4 if a policy refuses it, 6 if it needs approval. If
you pass arguments, toolctl validates them first.`,
		Annotations: formats("table", "json", "yaml"),
		Example: `  toolctl policy explain pay-invoice -a amount=10
  toolctl policy explain pay-invoice --session chat-7 --turn 3 -o json`,
		Args:              toolAndFlags,
		ValidArgsFunction: a.completeTools,
		RunE: func(cmd *cobra.Command, pos []string) (err error) {
			verb.Tool = pos[0]
			verb.Config = a.reaching(cmd.Context())
			return printed(a, explanation)(verb.Explain(cmd.Context()))
		},
	}
	a.bindArgs(cmd, v1.KindTool, &verb.Arguments)
	a.bindCaller(cmd, &verb.Session, &verb.Principal)
	cmd.Flags().StringVar(&verb.Turn, "turn", "", "turn within the session")
	return cmd
}

// explanation prints a decision with its rules. The exit code is that of the call.
func explanation(ex policy.Explanation) (string, error) {
	var b strings.Builder
	decision := ex.Decision
	if ex.Rule != "" {
		decision += fmt.Sprintf(" (policy %s, rule %s)", ex.Policy, ex.Rule)
	}
	fmt.Fprintf(&b, "Tool:      %s/%s\nDecision:  %s\n\n", ex.Namespace, ex.Tool, decision)
	if len(ex.Verdicts) == 0 {
		fmt.Fprintln(&b, "No policy governs this tool.")
	} else {
		t := newTable(&b, "POLICY", "RULE", "VERDICT", "BEFORE", "AFTER", "LIMIT", "WHY", "AT")
		for _, v := range ex.Verdicts {
			before, after, limit := "", "", ""
			if v.Limit != nil {
				limit, before, after = fmt.Sprint(*v.Limit), fmt.Sprint(*v.UsedBefore), fmt.Sprint(*v.UsedAfter)
			}
			t.row(v.Policy, v.Rule, v.Verdict, before, after, limit, v.Message, v.Source.String())
		}
		_ = t.Flush()
	}
	if len(ex.Unmatched) > 0 {
		fmt.Fprintln(&b)
		t := newTable(&b, "NOT APPLIED", "WHY")
		for _, u := range ex.Unmatched {
			t.row(u.Policy, u.Reason)
		}
		_ = t.Flush()
	}
	var verdict error
	if code := map[string]int{v1.DecisionDeny: exitRefused, v1.DecisionPending: exitPending}[ex.Decision]; code != 0 {
		verdict = statusError{code: code}
	}
	return strings.TrimSuffix(b.String(), "\n"), verdict
}

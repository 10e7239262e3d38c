package main

import (
	"encoding/json"
	"fmt"

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
	var (
		args          []string
		argsFile      string
		session, turn string
		principal     string
	)
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
		RunE: func(cmd *cobra.Command, pos []string) error {
			format := a.format()
			var err error
			call := v1.Call{Tool: pos[0], Namespace: a.conf.Namespace, Session: session, Turn: turn, Principal: principal}
			var pairs map[string]json.RawMessage
			if len(args) > 0 || argsFile != "" {
				if call.Args, pairs, err = a.argsAndPairs(cmd.Context(), args, argsFile); err != nil {
					return err
				}
			}
			w, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer a.closing(w)
			a.warnViolations(w)
			a.prepareTool(cmd.Context(), w, call.Tool)
			if it, err := w.Registry.Lookup(call.Namespace, call.Tool); err == nil {
				if call.Args, err = action.NestedArgs(it.Tool(), call.Args, pairs); err != nil {
					return err
				}
			}
			ex, err := w.Registry.ExplainPolicy(cmd.Context(), call)
			if err != nil {
				return err
			}
			done, err := a.encoded(format, ex)
			if !done {
				err = a.printExplanation(ex)
			}
			switch {
			case err == nil && ex.Decision == v1.DecisionDeny:
				return statusError{code: exitRefused}
			case err == nil && ex.Decision == v1.DecisionPending:
				return statusError{code: exitPending}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&args, "arg", "a", nil, argsHelp)
	_ = cmd.RegisterFlagCompletionFunc("arg", a.completeArgs)
	f.StringVar(&argsFile, "args-file", "", "file with a JSON or YAML object of arguments; - reads stdin")
	f.StringVar(&session, "session", "", "session whose policy counters apply (default: a new session)")
	_ = cmd.RegisterFlagCompletionFunc("session", a.fromStore(inOrder, sessions))
	f.StringVar(&turn, "turn", "", "turn within the session")
	f.StringVar(&principal, "principal", "", "principal that makes the call, as policies match it (default: none)")
	return cmd
}

func (a *app) printExplanation(ex policy.Explanation) error {
	fmt.Fprintf(a.out, "Tool:      %s/%s\n", ex.Namespace, ex.Tool)
	decision := ex.Decision
	if ex.Rule != "" {
		decision += fmt.Sprintf(" (policy %s, rule %s)", ex.Policy, ex.Rule)
	}
	fmt.Fprintf(a.out, "Decision:  %s\n", decision)
	if len(ex.Verdicts) == 0 {
		fmt.Fprintln(a.out, "\nNo policy governs this tool.")
	} else {
		fmt.Fprintln(a.out)
		t := newTable(a.out, "POLICY", "RULE", "VERDICT", "BEFORE", "AFTER", "LIMIT", "WHY", "AT")
		for _, v := range ex.Verdicts {
			before, after, limit := "-", "-", "-"
			if v.Limit != nil {
				limit = fmt.Sprint(*v.Limit)
				before, after = fmt.Sprint(*v.UsedBefore), fmt.Sprint(*v.UsedAfter)
			}
			t.row(v.Policy, v.Rule, v.Verdict, before, after, limit, v.Message, v.Source.String())
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(ex.Unmatched) > 0 {
		fmt.Fprintln(a.out)
		t := newTable(a.out, "NOT APPLIED", "WHY")
		for _, u := range ex.Unmatched {
			t.row(u.Policy, u.Reason)
		}
		return t.Flush()
	}
	return nil
}

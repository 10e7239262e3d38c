package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/scenario"
)

// auditStore is the value of --audit that stands for the store.
const auditStore = "store"

func newPolicySimulateCmd(a *app) *cobra.Command {
	var audit, since string
	cmd := &cobra.Command{
		Use:   "simulate --audit FILE|store",
		Short: "Find recorded calls that changed policies would decide differently",
		Long: `Evaluate the policies of the files (-f) on recorded calls, in their order, each at its own
time and in its own session and turn. Counters start at 0. The calls come from the audit log
of the store, or from a file with one audit record of JSON per line. The exit code is 1 if a
call would get a different decision.`,
		Annotations: formats("table", "json", "yaml"),
		Example: `  toolctl policy simulate -f policies/ --audit store
  toolctl policy simulate -f policies/ --audit calls.jsonl -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := a.format()
			if audit == "" {
				return usagef("--audit is missing: expected a file, or the word store")
			}
			verb := &action.Simulate{Audit: audit}
			if audit == auditStore {
				verb.Audit = ""
			}
			var err error
			if verb.Since, err = parseTime("--since", since, time.Now()); err != nil {
				return err
			}
			if verb.Config, err = a.reaching(cmd.Context()); err != nil {
				return err
			}
			sim, err := verb.Run(cmd.Context())
			if err != nil {
				return err
			}
			done, err := a.encoded(format, sim)
			if !done {
				err = a.printSimulation(sim)
			}
			if err == nil && len(sim.Changed) > 0 {
				return statusError{exitFailed, count(len(sim.Changed), "call") + " would get a different decision"}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&audit, "audit", "", "file with one audit record of JSON per line, or the word store")
	cmd.Flags().StringVar(&since, "since", "", "only calls from this time on: "+timeForms)
	return cmd
}

func (a *app) printSimulation(s *scenario.Simulation) error {
	if len(s.Changed) > 0 {
		t := newTable(a.out, "TIME", "CALL", "SESSION", "TOOL", "WAS", "NOW", "RULE", "WHY")
		for _, c := range s.Changed {
			rule := ""
			for _, d := range []v1.PolicyDecision{c.Now, c.Was} {
				if d.Rule != "" {
					rule = d.Policy + " " + d.Rule
					break
				}
			}
			t.row(c.Time.UTC().Format(time.RFC3339), c.CallID, c.Session, c.Namespace+"/"+c.Tool, c.Was.Decision, c.Now.Decision, rule, c.Message)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.out, "%s: %d would get a different decision, %d skipped\n", count(s.Calls+s.Skipped, "recorded call"), len(s.Changed), s.Skipped)
	return err
}

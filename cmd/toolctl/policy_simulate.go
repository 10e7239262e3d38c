package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/scenario"
)

// auditStore is the value of --audit that selects the store.
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
			verb.Config = a.reaching(cmd.Context())
			return printed(a, simulation)(verb.Run(cmd.Context()))
		},
	}
	cmd.Flags().StringVar(&audit, "audit", "", "file with one audit record of JSON per line, or the word store")
	cmd.Flags().StringVar(&since, "since", "", "only calls from this time on: "+timeForms)
	return cmd
}

// simulation lists the calls with a different decision, which are an error.
func simulation(s *scenario.Simulation) (text string, verdict error) {
	var b strings.Builder
	if len(s.Changed) > 0 {
		verdict = statusError{exitFailed, count(len(s.Changed), "call") + " would get a different decision"}
		t := newTable(&b, "TIME", "CALL", "SESSION", "TOOL", "WAS", "NOW", "RULE", "WHY")
		for _, c := range s.Changed {
			by := c.Now
			if by.Rule == "" {
				by = c.Was
			}
			rule := ""
			if by.Rule != "" {
				rule = by.Policy + " " + by.Rule
			}
			t.row(clock(c.Time), c.CallID, c.Session, c.Namespace+"/"+c.Tool, c.Was.Decision, c.Now.Decision, rule, c.Message)
		}
		_ = t.Flush()
	}
	fmt.Fprintf(&b, "%s: %d would get a different decision, %d skipped", count(s.Calls+s.Skipped, "recorded call"), len(s.Changed), s.Skipped)
	return b.String(), verdict
}

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
)

func newAuditPruneCmd(a *app) *cobra.Command {
	var before string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "prune --before TIME",
		Short: "Delete old audit records",
		Long: `Delete the audit records older than a time, and add a record of who did it and where the
log begins now. 'toolctl audit verify' can still verify the remaining records. If you must
keep the old ones, export them first. 'toolctl serve --audit-retention 90d' prunes once an hour.

The command works in steps of a few megabytes, each with a record of its own, so it needs little
disk space and also works on a store that has reached --store-max-bytes. The file shrinks. A file
made by an older toolctl shrinks with the first 'toolctl store compact'.`,
		Annotations: formats("text", "json", "yaml"),
		Example: `  toolctl audit export --since 2026-01-01 > 2026.jsonl
  toolctl audit prune --before 90d
  toolctl audit prune --before 2026-11-01 --dry-run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			now := time.Now()
			at, err := parseTime("--before", before, now)
			switch {
			case err != nil:
				return err
			case at.IsZero():
				return usagef("--before is missing: expected %s", timeForms)
			case at.After(now):
				return usagef("--before %q: expected a time in the past", before)
			}
			return printed(a, func(p store.AuditPrune) (string, error) {
				text := fmt.Sprintf("%s removed, %d kept", count(int(p.Lines), "line"), p.Kept)
				if p.Lines > 0 {
					text += fmt.Sprintf(": the audit begins with line %d", p.Start)
				}
				if dryRun {
					text += " (dry run)"
				}
				return text, nil
			})((&action.PruneAudit{Config: a.stored(cmd.Context()), Before: at, DryRun: dryRun}).Run(cmd.Context()))
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "delete records before this time: "+timeForms)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be deleted without deleting it")
	return cmd
}

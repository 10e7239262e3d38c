package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newAuditPruneCmd(a *app) *cobra.Command {
	var before string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "prune --before TIME",
		Short: "Remove old lines of the audit",
		Long: `Remove the lines of the audit whose times are before one, wherever they stand, and add a line
that says who did it and where the audit begins now. 'toolctl audit verify' proves what is
left. Export the lines first where they must be kept. 'toolctl serve --audit-retention 90d' does
it once an hour.

It works in steps of some megabytes, each with a line of its own, so that it needs little room, on a store
that has reached --store-max-bytes too. The file gets smaller; one that an earlier toolctl made does with
the first 'toolctl store compact'.

Output formats (-o): text, json, yaml.`,
		Annotations: formats("text", "json", "yaml"),
		Example: `  toolctl audit export --since 2026-01-01 > 2026.jsonl
  toolctl audit prune --before 90d
  toolctl audit prune --before 2026-11-01 --dry-run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := a.format()
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
			p, err := (&action.PruneAudit{Config: a.stored(cmd.Context()), Before: at, DryRun: dryRun}).Run(cmd.Context())
			if err != nil {
				return err
			}
			if done, err := a.encoded(format, p); done {
				return err
			}
			text := fmt.Sprintf("%s removed, %d kept", count(int(p.Lines), "line"), p.Kept)
			if p.Lines > 0 {
				text += fmt.Sprintf(": the audit begins with line %d", p.Start)
			}
			if dryRun {
				text += " (dry run)"
			}
			_, err = fmt.Fprintln(a.out, text)
			return err
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "remove lines before that time: "+timeForms)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	return cmd
}

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
)

func newStoreCompactCmd(a *app) *cobra.Command {
	var retention string
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Return free space in the store to the disk",
		Long: `Return free space in the store to the disk. With --audit-retention, toolctl deletes old audit
records first, like 'toolctl audit prune'.

A file made by an older toolctl is rewritten once. That needs twice the size of its contents
on the disk, and other commands wait until it is done. After that, and with files made by this
version, 'audit prune' returns space by itself, in small steps.

The tables of a PostgreSQL database are rewritten one after the other (VACUUM FULL) by the user
who owns them. Calls wait while a table is rewritten: run this command when there are few.`,
		Example: `  toolctl store compact
  toolctl store compact --audit-retention 90d`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, err := parseRetention(retention)
			if err != nil {
				return err
			}
			r, err := (&action.CompactStore{Config: a.stored(cmd.Context()), Retention: age, Pruned: func(p store.AuditPrune) {
				fmt.Fprintf(a.out, "%s of the audit removed, %d kept\n", count(int(p.Lines), "line"), p.Kept)
			}}).Run(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "the store takes %s, before it took %s\n", mebibytes(r.After), mebibytes(r.Before))
			return err
		},
	}
	bindRetention(cmd.Flags(), &retention, "remove lines of the audit that are older first")
	return cmd
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func bindRetention(f *pflag.FlagSet, into *string, usage string) {
	f.StringVar(into, "audit-retention", "", usage+", such as 90d, 12w or 36h (default: keep all records)")
}

// parseRetention reads the value of --audit-retention; "" is 0.
func parseRetention(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, ok := parseAgo(text)
	if !ok || d <= 0 {
		return 0, usagef("--audit-retention %q: expected a time above 0, such as 90d, 12w or 36h", text)
	}
	return d, nil
}

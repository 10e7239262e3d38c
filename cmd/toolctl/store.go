package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
)

func newStoreCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "store",
		Short: "Migrate, check, copy and back up the store",
		Long: `Maintain the store. It contains the applied manifests, the counters of policies, pending
calls and runs, overrides and the audit log.`,
		Example: `  toolctl store check
  toolctl store backup state-2026-11-22.db`,
	}, &cobra.Command{
		Use:   "migrate",
		Short: "Create the store or upgrade it",
		Long: `Create the store if it does not exist, or upgrade it to the version that this toolctl needs.
Every other command does that too if it has the right to. Use this command if only a
separate database user may create tables, or if upgrades are a step of your deployment.

If several processes migrate a PostgreSQL database at once, one does it and the others wait.
toolctl refuses a store made by a newer version.`,
		Example: `  toolctl store migrate
  toolctl store migrate --store postgres://owner@db/toolctl`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.done((&action.MigrateStore{Config: a.stored(cmd.Context())}).Run(cmd.Context()), "the store is up to date")
		},
	}, &cobra.Command{
		Use:   "check",
		Short: "Check that the store is readable and its audit log is intact",
		Long: `Read the whole store: every manifest, override, pending call and run, and the hash chain of
the audit log. The database also checks its own file. The exit code is 1 if something is
wrong.`,
		Annotations: formats("text", "json", "yaml"),
		Example:     `  toolctl store check`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printed(a, func(r store.Report) (string, error) {
				if len(r.Problems) > 0 {
					return "", statusError{exitFailed, "the store is damaged: " + strings.Join(r.Problems, "; ")}
				}
				return fmt.Sprintf("%s: intact, head %s", reportText(&r), r.Audit.Head), nil
			})((&action.CheckStore{Config: a.stored(cmd.Context())}).Run(cmd.Context()))
		},
	}, &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy a store to a new store, also of another kind",
		Long: `Copy a store, as of one moment, to a store that is new or empty: the manifests with their
versions and revisions, the counters of policies, pending calls and runs, the overrides, and
the audit log byte for byte, so that its hash chain still verifies. toolctl copies everything
or nothing. FROM and TO are values of --store.

Stop the gateways first: changes to FROM after that moment are not in TO.`,
		Example: `  toolctl store copy .toolctl/state.db postgres://toolctl@db/toolctl
  toolctl store copy postgres://toolctl@db/toolctl copy.db`,
		Args: exactArgs(2, "the store to copy and the store to create"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := (&action.CopyStore{Config: a.stored(cmd.Context()), From: args[0], To: args[1]}).Run(cmd.Context())
			shown, _ := store.Shown(args[1])
			return a.done(err, "copied to %s: %s, head %s", shown, reportText(&r), r.Audit.Head)
		},
	}, &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the store to a new file while it is in use",
		Long: `Copy the store, as of one moment, to a new file that only you can read. Other commands and
'toolctl serve' continue to work. The file is a store: select it with --store, or replace the
old store with it while nothing uses that one.

For a PostgreSQL database, use pg_dump, or 'toolctl store copy' to copy it to a file.`,
		Example: `  toolctl store backup state-2026-11-22.db
  toolctl store check --store state-2026-11-22.db`,
		Args: exactArgs(1, "the name of a new file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.done((&action.BackupStore{Config: a.stored(cmd.Context()), File: args[0]}).Run(cmd.Context()), "the store was copied to %s", args[0])
		},
	}, newStoreCompactCmd(a))
}

// reportText formats the counts of a store's contents.
func reportText(r *store.Report) string {
	text := count(r.Objects, "object") + ", " + count(r.Overrides, "override") + ", " + count(r.Approvals, "approval") + ", "
	if r.Runs > 0 {
		text += count(r.Runs, "run") + ", "
	}
	return text + count(int(r.Audit.Lines), "line") + " of the audit"
}

func newStoreCompactCmd(a *app) *cobra.Command {
	var retention time.Duration
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := (&action.CompactStore{Config: a.stored(cmd.Context()), Retention: retention, Pruned: func(p store.AuditPrune) {
				fmt.Fprintf(a.out, "%s of the audit removed, %d kept\n", count(int(p.Lines), "line"), p.Kept)
			}}).Run(cmd.Context())
			return a.done(err, "the store now uses %s; before, it used %s", mebibytes(r.After), mebibytes(r.Before))
		},
	}
	bindRetention(cmd.Flags(), &retention, "first delete audit records older than this")
	return cmd
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newStoreBackupCmd(a *app) *cobra.Command {
	return &cobra.Command{
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
			if err := (&action.BackupStore{Config: a.stored(cmd.Context()), File: args[0]}).Run(cmd.Context()); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.out, "the store was copied to %s\n", args[0])
			return err
		},
	}
}

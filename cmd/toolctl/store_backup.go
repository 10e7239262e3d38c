package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newStoreBackupCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the store to a new file, while it is used",
		Long: `Copy the store, as it is at one moment, to a new file that only you can read. Other
commands and 'toolctl serve' go on meanwhile. The file is a store: name it with --store,
or put it in the place of the old one while nothing runs on that.

A PostgreSQL database has pg_dump for that; 'toolctl store copy' makes a file of it, too.`,
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

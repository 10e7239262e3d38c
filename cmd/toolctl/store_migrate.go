package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newStoreMigrateCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Make the store, or bring it up to date",
		Long: `Make the store when there is none, or bring it to the version that this toolctl needs. Every
other command does that too, when it may: this is for who makes the tables with a
user that others do not have, or wants an upgrade to be a step of its own.

Of those who migrate a PostgreSQL database at once, one does it and the others wait. A store
of a newer toolctl is refused.`,
		Example: `  toolctl store migrate
  toolctl store migrate --store postgres://owner@db/toolctl`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := (&action.MigrateStore{Config: a.stored(cmd.Context())}).Run(cmd.Context()); err != nil {
				return err
			}
			_, err := fmt.Fprintln(a.out, "the store is up to date")
			return err
		},
	}
}

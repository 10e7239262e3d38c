package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newStoreMigrateCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Create the store or upgrade it",
		Long: `Create the store if it does not exist, or upgrade it to the version that this toolctl needs.
Every other command does that too if it has the right to. Use this command if only a
separate database user may create tables, or if upgrades are a step of your deployment.

If several processes migrate a PostgreSQL database at once, one does it and the others wait.
toolctl refuses a store made by a newer version.`,
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

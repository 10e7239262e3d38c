package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
)

func newStoreCopyCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy a store to a new store, also of another kind",
		Long: `Copy a store, as of one moment, to a store that is new or empty: the manifests with their
versions and revisions, the counters of policies, pending calls and runs, the overrides, and
the audit log byte for byte, so that its hash chain still verifies. toolctl copies everything
or nothing. FROM and TO are values of --store.

Stop the gateways first: changes to FROM after that moment are not in TO.`,
		Example: `  toolctl store copy .toolctl/state.db postgres://toolctl@db/toolctl
  toolctl store copy postgres://toolctl@db/toolctl copy.db`,
		Args: exactArgs(2, "the store to copy and the one to make"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := (&action.CopyStore{Config: a.stored(cmd.Context()), From: args[0], To: args[1]}).Run(cmd.Context())
			if err != nil {
				return err
			}
			shown, _ := store.Shown(args[1])
			_, err = fmt.Fprintf(a.out, "copied to %s: %s, head %s\n", shown, reportText(&r), r.Audit.Head)
			return err
		},
	}
}

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
		Short: "Make a new store a copy of another one, of another kind too",
		Long: `Copy a store, as it is at one moment, into one that is empty or is made by it: the manifests
with their versions and revisions, the counts of policies, the calls and the runs that
wait for approval, the overrides, and the audit byte for byte, so that its chain verifies as
before. All of it is copied or nothing. FROM and TO are what --store takes.

Stop the gateways first: what is written to FROM after that moment is not in TO.`,
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

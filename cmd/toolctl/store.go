package main

import (
	"github.com/spf13/cobra"
)

func newStoreCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "store",
		Short: "Migrate the store, check it, copy it, back it up, compact it",
		Long: `Look after the store, which keeps the applied manifests, the counts of policies, the
calls and the runs that wait for approval, the overrides and the audit.`,
		Example: `  toolctl store check
  toolctl store backup state-2026-11-22.db`,
	}, newStoreMigrateCmd(a), newStoreCheckCmd(a), newStoreCopyCmd(a), newStoreBackupCmd(a), newStoreCompactCmd(a))
}

package main

import (
	"github.com/spf13/cobra"
)

func newStoreCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "store",
		Short: "Migrate, check, copy and back up the store",
		Long: `Maintain the store. It contains the applied manifests, the counters of policies, pending
calls and runs, overrides and the audit log.`,
		Example: `  toolctl store check
  toolctl store backup state-2026-11-22.db`,
	}, newStoreMigrateCmd(a), newStoreCheckCmd(a), newStoreCopyCmd(a), newStoreBackupCmd(a), newStoreCompactCmd(a))
}

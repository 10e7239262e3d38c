package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
)

func newAuditVerifyCmd(a *app) *cobra.Command {
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Verify that no audit record was changed, removed or moved",
		Long: `Verify the hash chain of the audit log from the first record to the last, and name the first
record that was changed, removed, added or moved. The exit code is 1 if there is one.

The chain has no secret key: somebody with write access to the store can cut off its end or
write a whole new chain. Therefore keep the head that this command and 'toolctl audit list'
print in another place, and pass it with --head: a record with this hash must still exist.`,
		Annotations: formats("text", "json", "yaml"),
		Example: `  toolctl audit verify
  toolctl audit verify --head 0d3f...`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sum, err := hex.DecodeString(head); cmd.Flags().Changed("head") && (err != nil || len(sum) != sha256.Size) {
				return usagef("--head %q: expected the 64 hexadecimal digits that 'toolctl audit verify' prints", head)
			}
			return (&action.Audit{Config: a.stored(cmd.Context())}).Run(cmd.Context(), func(s store.Store, _ store.AuditFilter) error {
				return printed(a, chainText)(s.VerifyAudit(cmd.Context(), head))
			})
		},
	}
	cmd.Flags().StringVar(&head, "head", "", "head printed earlier; a record with this hash must still exist")
	return cmd
}

// chainText formats the result of a verification. A modified record is an error.
func chainText(check store.AuditCheck) (string, error) {
	if check.Broken != nil {
		return "", statusError{exitFailed, "the audit is broken: " + check.Broken.Error()}
	}
	text := count(int(check.Lines), "record")
	if check.Unchained > 0 {
		text += fmt.Sprintf(" and %d older than the chain", check.Unchained)
	}
	if check.Pruned > 0 {
		text += fmt.Sprintf(" after %d that were pruned", check.Pruned)
	}
	return fmt.Sprintf("%s: intact, head %s", text, check.Head), nil
}

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := a.format()
			if cmd.Flags().Changed("head") && !isHash(head) {
				return usagef("--head %q: expected the 64 hexadecimal digits that 'toolctl audit verify' prints", head)
			}
			s, err := (&action.Audit{Config: a.stored(cmd.Context())}).Open(cmd.Context())
			if err != nil {
				return err
			}
			defer a.closing(s)
			check, err := s.VerifyAudit(cmd.Context(), head)
			if err != nil {
				return err
			}
			done, err := a.encoded(format, check)
			if !done && check.Broken == nil {
				text := count(int(check.Lines), "record")
				if check.Unchained > 0 {
					text += fmt.Sprintf(" and %d older than the chain", check.Unchained)
				}
				if check.Pruned > 0 {
					text += fmt.Sprintf(" after %d that were pruned", check.Pruned)
				}
				_, err = fmt.Fprintf(a.out, "%s: intact, head %s\n", text, check.Head)
			}
			if err == nil && check.Broken != nil {
				err = statusError{exitFailed, "the audit is broken: " + check.Broken.Error()}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&head, "head", "", "head printed earlier; a record with this hash must still exist")
	return cmd
}

// isHash reports whether text is a SHA-256 in hexadecimal.
func isHash(text string) bool {
	for _, r := range text {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') && (r < 'A' || r > 'F') {
			return false
		}
	}
	return len(text) == 64
}

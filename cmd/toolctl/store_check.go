package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
)

func newStoreCheckCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check that the store is readable and its audit log is intact",
		Long: `Read the whole store: every manifest, override, pending call and run, and the hash chain of
the audit log. The database also checks its own file. The exit code is 1 if something is
wrong.`,
		Annotations: formats("text", "json", "yaml"),
		Example:     `  toolctl store check`,
		Args:        noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := (&action.CheckStore{Config: a.stored(cmd.Context())}).Run(cmd.Context())
			if err != nil {
				return err
			}
			done, err := a.encoded(a.format(), r)
			if !done && len(r.Problems) == 0 {
				_, err = fmt.Fprintf(a.out, "%s: intact, head %s\n", reportText(&r), r.Audit.Head)
			}
			if err == nil && len(r.Problems) > 0 {
				err = statusError{exitFailed, "the store is damaged: " + strings.Join(r.Problems, "; ")}
			}
			return err
		},
	}
}

// reportText says what a store holds.
func reportText(r *store.Report) string {
	text := count(r.Objects, "object") + ", " + count(r.Overrides, "override") + ", " + count(r.Approvals, "approval") + ", "
	if r.Runs > 0 {
		text += count(r.Runs, "run") + ", "
	}
	return text + count(int(r.Audit.Lines), "line") + " of the audit"
}

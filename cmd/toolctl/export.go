package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newExportCmd(a *app) *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use:   "export --dir DIR",
		Short: "Write the applied manifests into a new folder",
		Long: `Write the manifests that the store holds, and the files that they name, into a new or
empty folder. 'toolctl apply -f .' in it finds all of them unchanged. An object is in the
file that it was applied from where that path is relative, and else in
NAMESPACE/KIND-NAME.yaml. Comments and the order of keys are kept.

Overrides of descriptions, approvals, counts and the audit are not manifests:
'toolctl store backup' copies those too.`,
		Example: `  toolctl export --dir backup
  toolctl export --dir backup -n payments -l team=pay`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unexpected argument %q: the folder is given with --dir, as in --dir %s", args[0], shellWord(args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := (&action.Export{Config: a.stored(cmd.Context()), Selector: a.selector, Dir: dir}).Run(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%s in %s written to %s\n", count(r.Objects, "object"), count(r.Files, "file"), dir)
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder to write; it is made, or is empty")
	_ = cmd.MarkFlagDirname("dir")
	a.bindSelector(cmd.Flags(), "objects")
	return cmd
}

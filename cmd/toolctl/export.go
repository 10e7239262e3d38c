package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newExportCmd(a *app) *cobra.Command {
	var verb action.Export
	cmd := &cobra.Command{
		Use:   "export --dir DIR",
		Short: "Export the applied manifests to a new folder",
		Long: `Write the manifests in the store, and the files that they refer to, to a new or empty
folder. 'toolctl apply -f .' in that folder reports all of them as unchanged. An object goes
to the file that it was applied from if that path is relative, and else to
NAMESPACE/KIND-NAME.yaml. Comments and the order of keys are kept.

Overrides of descriptions, approvals, counts and the audit log are not manifests:
'toolctl store backup' copies those too.`,
		Example: `  toolctl export --dir backup
  toolctl export --dir backup -n payments -l team=pay`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unexpected argument %q: name the folder with --dir, as in --dir %s", args[0], shellWord(args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			verb.Config = a.stored(cmd.Context())
			return printed(a, func(r *action.Exported) (string, error) {
				return fmt.Sprintf("%s in %s written to %s", count(r.Objects, "object"), count(r.Files, "file"), verb.Dir), nil
			})(verb.Run(cmd.Context()))
		},
	}
	cmd.Flags().StringVar(&verb.Dir, "dir", "", "folder to write to; it must be new or empty")
	_ = cmd.MarkFlagDirname("dir")
	bindSelector(cmd.Flags(), &verb.Selector, "objects")
	return cmd
}

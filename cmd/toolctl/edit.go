package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newEditCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "edit KIND/NAME",
		Short: "Edit an object of the store in $EDITOR",
		Long: `Edit an object of the store in the editor named by VISUAL or EDITOR, or else in vi.
If the edited manifest has errors, the editor opens again with the errors as comments
at the top. An empty or unchanged file cancels the edit.

Output formats (-o): table (one line per object), name, json.`,
		Annotations: formats("table", "name", "json"),
		Example: `  toolctl edit tool/get-weather
  EDITOR='code --wait' toolctl edit toolpolicy careful -n prod`,
		ValidArgsFunction: a.completeResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			rs, err := requests(args)
			if err != nil {
				return a.meant(cmd, err)
			}
			if !named(rs) {
				return usagef("expected KIND/NAME or KIND NAME")
			}
			all, err := (&action.Edit{Config: a.config(cmd.Context()), Requests: rs, Editor: a.edit}).Run(cmd.Context())
			for _, e := range all {
				if e.Cancelled != "" {
					fmt.Fprintln(a.err, "edit cancelled: "+e.Cancelled)
				} else if perr := a.printChanges(e.Changes, false); perr != nil {
					return perr
				}
			}
			return err
		},
	}
}

// edit opens a file in the editor of the user.
func (a *app) edit(ctx context.Context, file string) error {
	program, args := a.editorCommand()
	return a.openEditor(ctx, cmp.Or(program, "vi"), append(args, file))
}

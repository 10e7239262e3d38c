package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/schemas"
)

func newExplainCmd(a *app) *cobra.Command {
	var recursive bool
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD]...",
		Short: "Print the documentation of a kind or a field",
		Long: `Print the documentation of a kind of manifest or of one of its fields: what it
means, its type, default and an example. The fields are written with points
between them; items of lists and values of maps need no word of their own.

Output formats (-o): table (text), json, yaml.`,
		Example: `  toolctl explain tool
  toolctl explain tool.spec.http
  toolctl explain toolpolicy.spec.limits --recursive`,
		Args: exactArgs(1, "one kind or field, such as tool.spec.http"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return schemas.Complete(prefix), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
		RunE: func(_ *cobra.Command, args []string) error {
			format, err := a.format("table", "json", "yaml")
			if err != nil {
				return err
			}
			doc, err := schemas.Explain(args[0], recursive)
			if err != nil {
				return err
			}
			switch format {
			case "json":
				return printJSON(a.out, doc)
			case "yaml":
				return printYAML(a.out, doc)
			}
			_, err = fmt.Fprint(a.out, doc.Text())
			return err
		},
	}
	cmd.Flags().BoolVar(&recursive, "recursive", false, "print the fields of all levels")
	return cmd
}

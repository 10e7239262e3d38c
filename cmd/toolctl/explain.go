package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/schemas"
)

func newExplainCmd(a *app) *cobra.Command {
	var recursive bool
	cmd := &cobra.Command{
		Use:   "explain [KIND[.FIELD]...]",
		Short: "Print the documentation of a kind or a field",
		Long: `Print the documentation of a kind of manifest or of one of its fields: its meaning, type,
default and an example. Separate the names of nested fields with dots; skip the items of
lists and the values of maps. Without an argument, the command lists the kinds.

Output formats (-o): table (text), json, yaml.`,
		Annotations: formats("table", "json", "yaml"),
		Example: `  toolctl explain
  toolctl explain tool
  toolctl explain tool.spec.http
  toolctl explain toolpolicy.spec.limits --recursive`,
		Args: upToOne("one kind or field, such as tool.spec.http"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, noFiles
			}
			return schemas.Complete(prefix), noFiles | cobra.ShellCompDirectiveNoSpace
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.explainKinds(recursive)
			}
			return printed(a, func(doc schemas.Doc) (string, error) { return strings.TrimSuffix(doc.Text(), "\n"), nil })(schemas.Explain(args[0], recursive))
		},
	}
	cmd.Flags().BoolVar(&recursive, "recursive", false, "print nested fields too")
	return cmd
}

// explainKinds lists the kinds, each with the first sentence of its description.
func (a *app) explainKinds(recursive bool) error {
	if recursive {
		return usagef("--recursive needs a kind or a field: 'toolctl explain tool --recursive'")
	}
	docs := make([]schemas.Field, 0, len(v1.Kinds()))
	for _, k := range v1.KindInfos() {
		doc, err := schemas.Explain(k.Singular(), false)
		if err != nil {
			return err
		}
		text, _, _ := strings.Cut(doc.Description, ". ")
		docs = append(docs, schemas.Field{Name: k.Singular(), Type: k.Kind, Description: strings.TrimSuffix(text, ".") + "."})
	}
	if a.format() == "table" {
		defer fmt.Fprintln(a.err, "\n'toolctl explain NAME' prints the fields of a kind, 'toolctl api-resources' its other names.")
	}
	return printList(a, listing[schemas.Field]{
		items: docs, value: docs, columns: []string{"NAME", "KIND", "DESCRIPTION"},
		row: func(d schemas.Field) []string { return []string{d.Name, d.Type, d.Description} },
	})
}

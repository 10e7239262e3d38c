package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
)

func newAPIResourcesCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "api-resources",
		Short: "List the kinds of manifest and what they are called",
		Long: `List the kinds of manifest, with the words by which commands know them. Every
command takes each of them, in any case: 'toolctl get tp' lists ToolPolicies.

Output formats (-o): table, wide, json, yaml, name.`,
		Annotations: formats("table", "wide", "json", "yaml", "name"),
		Example: `  toolctl api-resources
  toolctl api-resources -o name`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.printKinds(v1.KindInfos()) },
	}
}

func (a *app) printKinds(kinds []v1.KindInfo) error {
	format := a.format()
	if done, err := a.encoded(format, kinds); done {
		return err
	}
	if format == "name" {
		for _, k := range kinds {
			fmt.Fprintln(a.out, k.Name)
		}
		return nil
	}
	head := []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"}
	if format == "wide" {
		head = append(head, "VERBS")
	}
	t := newTable(a.out, head...)
	for _, k := range kinds {
		cells := []string{k.Name, cmp.Or(strings.Join(k.Short, ","), "-"), v1.APIVersion, "true", k.Kind}
		if format == "wide" {
			cells = append(cells, "apply,delete,describe,edit,get,list,watch")
		}
		t.row(cells...)
	}
	return t.Flush()
}

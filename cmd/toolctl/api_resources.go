package main

import (
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
)

func newAPIResourcesCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "api-resources",
		Short: "List the kinds of manifest with their names and short names",
		Long: `List the kinds of manifest with the names that commands accept for them. Every command
accepts each name, in any case: 'toolctl get tp' lists ToolPolicies.`,
		Annotations: formats("table", "wide", "json", "yaml", "name"),
		Example: `  toolctl api-resources
  toolctl api-resources -o name`,
		RunE: func(*cobra.Command, []string) error { return a.printKinds(v1.KindInfos()) },
	}
}

func (a *app) printKinds(kinds []v1.KindInfo) error {
	return printList(a, listing[v1.KindInfo]{
		items: kinds, value: kinds, name: func(k v1.KindInfo) string { return k.Name }, columns: []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"},
		row: func(k v1.KindInfo) []string {
			return []string{k.Name, strings.Join(k.Short, ","), v1.APIVersion, "true", k.Kind}
		},
		wide: []string{"VERBS"}, more: func(v1.KindInfo) []string { return []string{"apply,delete,describe,edit,get,list,watch"} },
	})
}

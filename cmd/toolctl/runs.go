package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
)

func newRunsCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "runs",
		Short: "List and delete runs pending approval",
		Long: `List and delete runs of 'toolctl run' that are pending approval. The store keeps them;
'toolctl run --resume ID' continues a run.`,
		Example: `  toolctl runs list
  toolctl runs delete 3KQ5WZ2XJH7N4M6P`,
	}, newRunsListCmd(a), newRunsDeleteCmd(a))
}

func newRunsListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "list",
		Short:       "List the pending runs",
		Long:        `List the pending runs, newest last.`,
		Annotations: formats("table", "json", "yaml", "name"),
		Example: `  toolctl runs list
  toolctl run --resume $(toolctl runs list -o name | tail -n 1)`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := (&action.ListRuns{Config: a.stored(cmd.Context())}).Run(cmd.Context())
			if err != nil {
				return err
			}
			return a.printRuns(all)
		},
	}
}

func (a *app) printRuns(all []store.Run) error {
	return printList(a, listing[store.Run]{
		items: all, name: func(r store.Run) string { return r.ID }, empty: "no runs found", columns: []string{"ID", "PROMPT", "UPDATED"},
		row: func(r store.Run) []string {
			updated := ""
			if !r.Updated.IsZero() {
				updated = clock(r.Updated)
			}
			return []string{r.ID, r.Prompt, updated}
		},
	})
}

func newRunsDeleteCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete pending runs",
		Long: `Delete pending runs with their transcripts, except runs that are being resumed. Their
pending calls stay: deny them with 'toolctl approvals deny'.`,
		Example:           `  toolctl runs delete 3KQ5WZ2XJH7N4M6P`,
		Args:              someArgs("name the runs to delete: 'toolctl runs list' lists them"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, ids []string) error {
			deleted, err := (&action.DeleteRuns{Config: a.stored(cmd.Context()), IDs: ids}).Run(cmd.Context())
			for _, id := range deleted {
				fmt.Fprintf(a.out, "run %s deleted\n", id)
			}
			return err
		},
	}
}

// completeRuns completes the IDs of pending runs.
func (a *app) completeRuns(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	all, _ := (&action.ListRuns{Config: a.stored(cmd.Context())}).Run(cmd.Context()) // without a readable store there are no completions
	var ids []string
	for _, r := range all {
		ids = append(ids, strings.TrimSuffix(r.ID+"\t"+r.Prompt, "\t"))
	}
	return withPrefix(prefix, ids), noFiles
}

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/store"
)

func newRunsCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "runs",
		Short: "List and delete runs that wait for approval",
		Long: `List and delete the runs of 'toolctl run' that wait for approval. They wait in the store;
'toolctl run --resume ID' goes on with one.`,
		Example: `  toolctl runs list
  toolctl runs delete 3KQ5WZ2XJH7N4M6P`,
	}, newRunsListCmd(a), newRunsDeleteCmd(a))
}

// openRuns opens the store whose runs are looked after; closing them closes it.
func (a *app) openRuns(ctx context.Context) (*runStates, error) {
	s, err := a.openKept(ctx)
	if err != nil {
		return nil, err
	}
	states := a.states(s, runFlags{})
	if states == nil {
		a.closing(s)
		return nil, usagef("a store that ends with the process keeps no runs: name another with --store")
	}
	states.closes = s
	return states, nil
}

func newRunsListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the runs that wait",
		Long: `List the runs that wait, the newest last.

Output formats (-o): table, json, yaml, name.`,
		Annotations: formats("table", "json", "yaml", "name"),
		Example: `  toolctl runs list
  toolctl run --resume $(toolctl runs list -o name | tail -n 1)`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format := a.format()
			states, err := a.openRuns(cmd.Context())
			if err != nil {
				return err
			}
			defer a.closing(states)
			all, err := states.list(cmd.Context())
			if err != nil {
				return err
			}
			return a.printRuns(format, all)
		},
	}
}

func (a *app) printRuns(format string, all []store.Run) error {
	if done, err := a.encoded(format, map[string]any{"items": all}); done {
		return err
	}
	if format == "name" {
		for _, r := range all {
			fmt.Fprintln(a.out, r.ID)
		}
		return nil
	}
	if len(all) == 0 {
		fmt.Fprintln(a.err, "no runs found")
		return nil
	}
	t := newTable(a.out, "ID", "PROMPT", "UPDATED")
	for _, r := range all {
		updated := ""
		if !r.Updated.IsZero() {
			updated = clock(r.Updated)
		}
		t.row(r.ID, r.Prompt, updated)
	}
	return t.Flush()
}

func newRunsDeleteCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete runs that wait",
		Long: `Delete runs that wait, with their transcripts. A run that is being resumed is not deleted. The
calls that it waits for stay: deny them with 'toolctl approvals deny'.`,
		Example:           `  toolctl runs delete 3KQ5WZ2XJH7N4M6P`,
		Args:              someArgs("name the runs to delete: 'toolctl runs list' lists them"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, ids []string) error {
			states, err := a.openRuns(cmd.Context())
			if err != nil {
				return err
			}
			defer a.closing(states)
			for _, id := range ids {
				if _, err := states.take(cmd.Context(), id); err != nil {
					return err
				}
				if err := states.Drop(cmd.Context(), id); err != nil {
					return err
				}
				fmt.Fprintf(a.out, "run %s deleted\n", id)
			}
			return nil
		},
	}
}

// completeRuns completes the ids of the runs that wait.
func (a *app) completeRuns(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	states, err := a.openRuns(cmd.Context())
	if err != nil {
		return nil, noFiles
	}
	defer a.closing(states)
	all, _ := states.list(cmd.Context()) // what cannot be read completes nothing
	var ids []string
	for _, r := range all {
		ids = append(ids, strings.TrimSuffix(r.ID+"\t"+r.Prompt, "\t"))
	}
	return withPrefix(prefix, ids), noFiles
}

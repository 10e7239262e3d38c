package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/action"
)

func newSearchSuggestCmd(a *app) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "suggest",
		Short: "List queries of find_tools that led to no call",
		Long: `List the queries of find_tools after which the session called no tool before the next query,
or no tool at all, from the audit log of the store: the most frequent first, with secrets
masked and "…" for addresses, paths and long numbers.

THEN CALLED are the tools that the sessions called after a further query. Add the query to
the tool that it means, as the ask of one of its spec.examples or in spec.keywords.`,
		Annotations: formats("table", "json", "yaml"),
		Example:     `  toolctl search suggest --since 7d`,
		Args:        noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := parseTime("--since", since, time.Now())
			if err != nil {
				return err
			}
			found, err := (&action.SuggestAsks{Config: a.stored(cmd.Context()), Since: at}).Run(cmd.Context())
			if err != nil {
				return err
			}
			return printList(a, listing[action.SuggestedAsk]{
				items: found, empty: "every query of find_tools led to a call, or there are none",
				columns: []string{"TIMES", "LAST", "QUERY", "THEN CALLED"},
				row: func(s action.SuggestedAsk) []string {
					return []string{strconv.Itoa(s.Times), clock(s.Last), clip.Words(inspect.Show(s.Ask), 80), strings.Join(s.Then, ", ")}
				},
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only queries from this time on: "+timeForms)
	return cmd
}

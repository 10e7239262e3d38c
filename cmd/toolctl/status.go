package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/source"
)

func newStatusCmd(a *app) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "status [--url URL]",
		Short: "Show which commit is served or was last applied",
		Long: `Show which commit is served or was last applied, and since when.

With --url, toolctl queries /readyz of a gateway ('toolctl serve --http'): whether it accepts
calls, which commit of its --source it serves, and why it does not serve the newest one. The
exit code is 7 if the gateway cannot be reached or accepts no calls.

Without --url, toolctl reads the store and shows the last applied commit of each set, from
'toolctl reconcile' or apply.`,
		Annotations: formats("table", "json"),
		Example: `  toolctl status --url http://127.0.0.1:8080
  toolctl status --store /var/lib/toolctl/state.db -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address != "" {
				return a.gatewayStatus(cmd.Context(), address)
			}
			return a.storeStatus(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "address of a gateway, such as http://127.0.0.1:8080")
	return cmd
}

func (a *app) storeStatus(ctx context.Context) error {
	sets, err := (&action.AppliedSets{Config: a.stored(ctx)}).Run(ctx)
	if err != nil {
		return err
	}
	return printList(a, listing[action.AppliedSet]{
		items: sets, value: sets, empty: "nothing was applied yet", columns: []string{"SET", "REVISION", "COMMIT", "SINCE", "OBJECTS", "SOURCE"},
		row: func(s action.AppliedSet) []string {
			return []string{strings.ReplaceAll(s.Set, "\n", ", "), strconv.FormatInt(s.Revision, 10), shortCommit(s.Commit), clock(s.Since), strconv.Itoa(s.Objects), s.Source}
		},
	})
}

func (a *app) gatewayStatus(ctx context.Context, address string) error {
	s, err := (&action.AskGateway{URL: address}).Run(ctx)
	if err != nil {
		return err
	}
	if a.format() == "json" {
		err = printJSON(a.out, s)
	} else {
		err = a.printReadiness(s)
	}
	if err == nil && !s.Ready {
		return statusError{exitUnavailable, ""}
	}
	return err
}

func (a *app) printReadiness(s *action.Readiness) error {
	lines := [][2]string{{"url", s.URL}, {"ready", "yes, " + count(s.Tools, "tool")}}
	if !s.Ready {
		lines[1][1] = "no: " + s.Reason
	}
	if s.Source != nil {
		lines = append(lines, [2]string{"source", s.Source.Source}, [2]string{"commit", sourceLine(s.Source)})
		if s.Source.Checked != nil {
			lines = append(lines, [2]string{"checked", s.Source.Checked.Format(time.RFC3339)})
		}
	}
	if s.Warning != "" {
		lines = append(lines, [2]string{"warning", s.Warning})
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(a.out, "%-10s%s\n", l[0]+":", clip.Line(l[1])); err != nil {
			return err
		}
	}
	return nil
}

// sourceLine says which revision of a source is used, and since when.
func sourceLine(s *source.Status) string {
	if s.Since == nil {
		return "none"
	}
	text := fmt.Sprintf("%s since %s", s.Revision, s.Since.Format(time.RFC3339))
	if s.RolledBackFrom != "" {
		text += ", rolled back from " + s.RolledBackFrom
	}
	return text
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
)

func newOverrideCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "override",
		Short: "Override tool descriptions",
		Long: `Change the description of a tool without changing its manifest: a tool that is served, or
a tool of an MCP server. Overrides are in the store. They apply at once to every command
that uses the store and to a running 'toolctl serve', and later applies keep them. Each
change has a version, so that you can undo it.`,
		Example: `  toolctl override set get-weather 'Weather now. Ask for one city at a time.'
  toolctl override history get-weather
  toolctl override rollback get-weather 3
  toolctl override unset get-weather`,
	}, newOverrideSetCmd(a), newOverrideListCmd(a), newOverrideHistoryCmd(a), newOverrideRollbackCmd(a), newOverrideUnsetCmd(a))
}

func newOverrideSetCmd(a *app) *cobra.Command {
	var author, file string
	cmd := &cobra.Command{
		Use:   "set NAME (DESCRIPTION | --file PATH)",
		Short: "Override the description of a tool",
		Example: `  toolctl override set get-weather 'Weather now. Ask for one city at a time.'
  toolctl override set docs__search --file search.txt`,
		ValidArgsFunction: a.completeTools,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 || (len(args) == 2) == (file != "") {
				return usagef("expected the name of a tool, and its description or --file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.overrideText(cmd.Context(), args[1:], file)
			if err != nil {
				return err
			}
			return a.override(cmd.Context(), action.Override{Tool: args[0], Text: text}, author)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "file with the description, or - for stdin")
	cmd.Flags().StringVar(&author, "as", "", "name of the author (default: your login)")
	return cmd
}

func (a *app) overrideText(ctx context.Context, words []string, file string) (string, error) {
	text := strings.Join(words, "")
	if file != "" {
		raw, err := a.readInput(ctx, file, store.MaxDescription)
		var usage usageError
		switch {
		case errors.As(err, &usage):
			return "", usagef("--file: %w", err)
		case err != nil:
			return "", err
		}
		text = string(raw)
	}
	return text, nil
}

// override makes an override and says so.
func (a *app) override(ctx context.Context, o action.Override, author string) error {
	o.Config = a.stored(ctx)
	o.By = cmp.Or(author, o.By)
	r, err := o.Run(ctx)
	switch {
	case err != nil:
		return err
	case r.Override == nil:
		_, err = fmt.Fprintf(a.out, "%s has no override\n", action.ToolName(r.Tool))
	case r.Override.Description == "":
		_, err = fmt.Fprintf(a.out, "%s has its own description again (version %d)\n", action.ToolName(r.Tool), r.Override.Version)
	default:
		_, err = fmt.Fprintf(a.out, "%s has another description now (version %d)\n", action.ToolName(r.Tool), r.Override.Version)
	}
	return err
}

func newOverrideListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "list",
		Short:       "List the current overrides",
		Long:        `List the current overrides.`,
		Annotations: formats("table", "json", "yaml"),
		Args:        noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.printOverrides(action.Overrides{Config: a.stored(cmd.Context())}.Run(cmd.Context()))
		},
	}
}

func newOverrideHistoryCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "history NAME",
		Short: "List all overrides of a tool, newest first",
		Long: `List all overrides of a tool, newest first. A version that removed an override has no
description.`,
		Annotations:       formats("table", "json", "yaml"),
		ValidArgsFunction: a.completeTools,
		Args:              oneTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.printOverrides(action.Overrides{Config: a.stored(cmd.Context()), Tool: args[0]}.Run(cmd.Context()))
		},
	}
}

func oneTool(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("expected the name of one tool")
	}
	return nil
}

func newOverrideUnsetCmd(a *app) *cobra.Command {
	var author string
	cmd := &cobra.Command{
		Use:               "unset NAME",
		Short:             "Remove the override of a tool",
		ValidArgsFunction: a.completeTools,
		Args:              oneTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.override(cmd.Context(), action.Override{Tool: args[0], Unset: true}, author)
		},
	}
	cmd.Flags().StringVar(&author, "as", "", "name of the author (default: your login)")
	return cmd
}

func newOverrideRollbackCmd(a *app) *cobra.Command {
	var author string
	cmd := &cobra.Command{
		Use:               "rollback NAME VERSION",
		Short:             "Restore an earlier override",
		Long:              "Restore the description of an earlier version, as a new version. 'toolctl override\nhistory NAME' lists the versions.",
		ValidArgsFunction: a.completeTools,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("expected the name of a tool and a version")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.override(cmd.Context(), action.Override{Tool: args[0], Version: args[1]}, author)
		},
	}
	cmd.Flags().StringVar(&author, "as", "", "who makes the change (default: the name of the user)")
	return cmd
}

func (a *app) printOverrides(all []store.Override, err error) error {
	if err != nil {
		return err
	}
	format := a.format()
	if all == nil {
		all = []store.Override{}
	}
	list := struct {
		Items []store.Override `json:"items"`
	}{all}
	if done, err := a.encoded(format, list); done {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.out, "no overrides")
		return err
	}
	t := newTable(a.out, "VERSION", "NAMESPACE", "TOOL", "BY", "TIME", "DESCRIPTION")
	for _, o := range all {
		t.row(fmt.Sprint(o.Version), o.Namespace, o.Tool, o.Author, o.Time.Format(time.RFC3339), clip.Words(o.Description, 60))
	}
	return t.Flush()
}

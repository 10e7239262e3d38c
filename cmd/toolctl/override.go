package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
)

func newOverrideCmd(a *app) *cobra.Command {
	var file, author string
	as := func(cmd *cobra.Command) *cobra.Command {
		cmd.ValidArgsFunction = a.completeTools
		cmd.Flags().StringVar(&author, "as", "", "name of the author (default: your login)")
		return cmd
	}
	set := as(&cobra.Command{
		Use:   "set NAME (DESCRIPTION | --file PATH)",
		Short: "Override the description of a tool",
		Example: `  toolctl override set get-weather 'Weather now. Ask for one city at a time.'
  toolctl override set docs__search --file search.txt`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 || (len(args) == 2) == (file != "") {
				return usagef("expected the name of a tool, and its description or --file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args[1:], "")
			if file != "" {
				raw, err := a.stored(cmd.Context()).ReadInput(file, store.MaxDescription)
				if err != nil {
					return fmt.Errorf("--file: %w", err)
				}
				text = string(raw)
			}
			return a.override(cmd.Context(), action.Override{Tool: args[0], Text: text}, author)
		},
	})
	set.Flags().StringVar(&file, "file", "", "file with the description, or - for stdin")
	list := func(cmd *cobra.Command, args []string) error {
		return a.printOverrides(action.Overrides{Config: a.stored(cmd.Context()), Tool: strings.Join(args, "")}.Run(cmd.Context()))
	}
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
	}, set, &cobra.Command{
		Use:         "list",
		Short:       "List the current overrides",
		Long:        "List the current overrides.",
		Annotations: formats("table", "json", "yaml"),
		RunE:        list,
	}, &cobra.Command{
		Use:   "history NAME",
		Short: "List all overrides of a tool, newest first",
		Long: `List all overrides of a tool, newest first. A version that removed an override has no
description.`,
		Annotations:       formats("table", "json", "yaml"),
		ValidArgsFunction: a.completeTools,
		Args:              exactArgs(1, "the name of one tool"),
		RunE:              list,
	}, as(&cobra.Command{
		Use:   "rollback NAME VERSION",
		Short: "Restore an earlier override",
		Long:  "Restore the description of an earlier version, as a new version. 'toolctl override\nhistory NAME' lists the versions.",
		Args:  exactArgs(2, "the name of a tool and a version"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.override(cmd.Context(), action.Override{Tool: args[0], Version: args[1]}, author)
		},
	}), as(&cobra.Command{
		Use:   "unset NAME",
		Short: "Remove the override of a tool",
		Args:  exactArgs(1, "the name of one tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.override(cmd.Context(), action.Override{Tool: args[0], Unset: true}, author)
		},
	}))
}

// override changes an override and prints the change.
func (a *app) override(ctx context.Context, o action.Override, author string) error {
	o.Config = a.stored(ctx)
	o.By = cmp.Or(author, o.By)
	r, err := o.Run(ctx)
	if err != nil {
		return err
	}
	name := action.ToolName(r.Tool)
	switch {
	case r.Override == nil:
		return a.done(nil, "%s has no override", name)
	case r.Override.Description == "":
		return a.done(nil, "%s has its own description again (version %d)", name, r.Override.Version)
	}
	return a.done(nil, "%s has another description now (version %d)", name, r.Override.Version)
}

func (a *app) printOverrides(all []store.Override, err error) error {
	switch {
	case err != nil:
		return err
	case len(all) == 0 && a.format() == "table":
		return a.done(nil, "no overrides")
	}
	return printList(a, listing[store.Override]{
		items: all, columns: []string{"VERSION", "NAMESPACE", "TOOL", "BY", "TIME", "DESCRIPTION"},
		row: func(o store.Override) []string {
			return []string{fmt.Sprint(o.Version), o.Namespace, o.Tool, o.Author, o.Time.Format(time.RFC3339), clip.Words(o.Description, 60)}
		},
	})
}

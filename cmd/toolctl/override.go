package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
)

func newOverrideCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "override",
		Short: "Change what a tool says of itself while it is served",
		Long: `Change the description of a tool without its manifest: of a tool that is served
now, or that an MCP server offers. An override is kept in the store, holds for every
command on that store and for a 'toolctl serve' that runs on it, at once, and
outlives every apply. Each has a version, so that it can be undone.`,
		Example: `  toolctl override set get-weather 'Weather now. Ask for one city at a time.'
  toolctl override history get-weather
  toolctl override rollback get-weather 3
  toolctl override unset get-weather`,
	}, newOverrideSetCmd(a), newOverrideListCmd(a), newOverrideHistoryCmd(a), newOverrideRollbackCmd(a), newOverrideUnsetCmd(a))
}

// overrideTool is a tool that an override is for.
type overrideTool struct{ namespace, name string }

func (t overrideTool) String() string {
	if t.namespace == v1.DefaultNamespace {
		return "tool/" + t.name
	}
	return "tool/" + t.namespace + "/" + t.name
}

// withOverrides opens the store and finds the tool that a name means.
func (a *app) withOverrides(ctx context.Context, name string, do func(store.Store, overrideTool) error) error {
	if len(a.files) > 0 {
		return usagef("overrides are in the store, not in files: leave out -f, and name the store with --store where it is not the usual one")
	}
	s, err := a.openStore(ctx, false)
	if err != nil {
		return err
	}
	defer a.closing(s)
	k, err := action.OverrideTool(ctx, s, a.namespace, name)
	if err != nil {
		return err
	}
	return do(s, overrideTool{k.Namespace, k.Name})
}

func newOverrideSetCmd(a *app) *cobra.Command {
	var author, file string
	cmd := &cobra.Command{
		Use:   "set NAME (DESCRIPTION | --file PATH)",
		Short: "Give a tool another description",
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
			return a.withOverrides(cmd.Context(), args[0], func(s store.Store, t overrideTool) error {
				return a.setOverride(cmd.Context(), s, t, text, author)
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "file that holds the description, or - for stdin")
	cmd.Flags().StringVar(&author, "as", "", "who makes the override (default: the name of the user)")
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
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", usagef("the description is empty: 'toolctl override unset' takes an override back")
	case len(text) > store.MaxDescription:
		return "", usagef("the description is longer than %d bytes", store.MaxDescription)
	}
	return text, nil
}

func (a *app) setOverride(ctx context.Context, s store.Store, t overrideTool, text, author string) error {
	if author == "" {
		author = a.whoami()
	}
	o, err := s.SetOverride(ctx, store.Override{Namespace: t.namespace, Tool: t.name, Description: text, Author: author})
	if err != nil {
		return err
	}
	did := "has another description now"
	if text == "" {
		did = "has its own description again"
	}
	_, err = fmt.Fprintf(a.out, "%s %s (version %d)\n", t, did, o.Version)
	return err
}

func newOverrideListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the overrides that hold",
		Long: `List the overrides that hold.

Output formats (-o): table, json, yaml.`,
		Annotations: formats("table", "json", "yaml"),
		Args:        noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.openStore(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.closing(s)
			all, err := s.Overrides(cmd.Context())
			if err != nil {
				return err
			}
			return a.printOverrides(all)
		},
	}
}

func newOverrideHistoryCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "history NAME",
		Short: "List every override that a tool had, the newest first",
		Long: `List every override that a tool had, the newest first. One that took another
back has no description.

Output formats (-o): table, json, yaml.`,
		Annotations:       formats("table", "json", "yaml"),
		ValidArgsFunction: a.completeTools,
		Args:              oneTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withOverrides(cmd.Context(), args[0], func(s store.Store, t overrideTool) error {
				all, err := s.OverrideHistory(cmd.Context(), t.namespace, t.name)
				if err != nil {
					return err
				}
				return a.printOverrides(all)
			})
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
		Short:             "Give a tool its own description again",
		ValidArgsFunction: a.completeTools,
		Args:              oneTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withOverrides(cmd.Context(), args[0], func(s store.Store, t overrideTool) error {
				all, err := s.OverrideHistory(cmd.Context(), t.namespace, t.name)
				if err != nil {
					return err
				}
				if len(all) == 0 || all[0].Description == "" {
					_, err = fmt.Fprintf(a.out, "%s has no override\n", t)
					return err
				}
				return a.setOverride(cmd.Context(), s, t, "", author)
			})
		},
	}
	cmd.Flags().StringVar(&author, "as", "", "who removes the override (default: the name of the user)")
	return cmd
}

func newOverrideRollbackCmd(a *app) *cobra.Command {
	var author string
	cmd := &cobra.Command{
		Use:               "rollback NAME VERSION",
		Short:             "Give a tool the description of an earlier override",
		Long:              "Give a tool the description that it had at a version, as a new version. 'toolctl\noverride history NAME' lists the versions.",
		ValidArgsFunction: a.completeTools,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("expected the name of a tool and a version")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withOverrides(cmd.Context(), args[0], func(s store.Store, t overrideTool) error {
				all, err := s.OverrideHistory(cmd.Context(), t.namespace, t.name)
				if err != nil {
					return err
				}
				for _, o := range all {
					if fmt.Sprint(o.Version) == args[1] {
						return a.setOverride(cmd.Context(), s, t, o.Description, author)
					}
				}
				var known []string
				for _, o := range all {
					known = append(known, fmt.Sprint(o.Version))
				}
				if known == nil {
					return usagef("%s never had an override", t)
				}
				return usagef("%s has no version %q: it has %s", t, args[1], strings.Join(known, ", "))
			})
		},
	}
	cmd.Flags().StringVar(&author, "as", "", "who makes the change (default: the name of the user)")
	return cmd
}

func (a *app) printOverrides(all []store.Override) error {
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

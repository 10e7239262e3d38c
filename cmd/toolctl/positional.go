package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
)

// group returns a command that only has subcommands and prints its help.
func group(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = noSubcommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subcommands...)
	return cmd
}

// newHelpCmd returns the help command of cobra, except that an unknown command is an error.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND]...",
		Short:             "Print the help of a command",
		ValidArgsFunction: helpTopics,
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				of.SuggestionsMinimumDistance = 2
				word := args[len(args)-max(len(rest), 1)]
				return usagef("unknown command %s%s", quoted(word), nearestCommand(of, word))
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

func helpTopics(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	of, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, noFiles
	}
	var names []string
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() && strings.HasPrefix(c.Name(), prefix) {
			names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
		}
	}
	return names, noFiles
}

// noSubcommand refuses arguments that are not a subcommand.
func noSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	return usagef("unknown command %q for %q%s", args[0], cmd.CommandPath(), nearestCommand(cmd, args[0]))
}

// ofKubectl maps commands of kubectl that toolctl does not have to their replacements.
var ofKubectl = map[string]string{
	"patch":    "change the file and apply it, or 'toolctl edit KIND/NAME'",
	"label":    "change metadata.labels in the file and apply it, or 'toolctl edit KIND/NAME'",
	"annotate": "change metadata.annotations in the file and apply it, or 'toolctl edit KIND/NAME'",
	"logs":     "'toolctl audit list --follow' prints calls as they are made; 'toolctl serve' logs to stderr",
	"events":   "'toolctl audit list' has the changes and the calls",
	"exec":     "'toolctl call NAME -a key=value' calls a tool",
}

// nearestCommand suggests the subcommand most similar to a name; it returns "" if no subcommand is similar.
func nearestCommand(cmd *cobra.Command, name string) string {
	if instead := ofKubectl[name]; instead != "" && !cmd.HasParent() {
		return ": " + instead
	}
	near := cmd.SuggestionsFor(name) // in the order of the commands
	if len(near) == 0 {
		return ""
	}
	best := cmp.Or(v1.Nearest(name, near), near[0])
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, name) {
			best = c.Name()
		}
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// noArgs is cobra.NoArgs with a usage error.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q", args[0])
	}
	return nil
}

// exactArgs is cobra.ExactArgs with a usage error.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usagef("expected %s, got %s", what, count(len(args), "argument"))
	}
}

// upToOne accepts at most one argument.
func upToOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return exactArgs(1, what)(cmd, args)
	}
}

// someArgs accepts one argument or more. Without any, the error is expected.
func someArgs(expected string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s", expected)
		}
		return nil
	}
}

// commandOrURL accepts the command or the URL of an MCP server.
var commandOrURL = someArgs("expected -- and a command, or a URL")

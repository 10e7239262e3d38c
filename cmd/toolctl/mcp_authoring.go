package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/authoring"
)

func newMCPAuthoringCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "authoring",
		Short: "Serve tools that help an agent write manifests",
		Long: `Serve an MCP server over stdin and stdout for an agent that writes manifests, such as
Claude Code, Cursor or VS Code. Its tools work as the commands of the same names, on a
text or on the folder given with -f (default: the current folder): validate, explain,
lint, diff, and test (with mocks only). The tool named examples shows complete manifests.

The tools write nothing, call nothing, and read no hidden files and no files outside the
folder. docs/authoring.md shows how to set up each client.`,
		Example: `  claude mcp add toolctl-authoring -- toolctl mcp authoring
  toolctl mcp authoring -f tools/`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveAuthoring(cmd.Context()) },
	}
	a.bindPermit(cmd.Flags(), "")
	return cmd
}

func (a *app) serveAuthoring(ctx context.Context) error {
	a.log = slog.New(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c := a.config(ctx)
	c.Gateway.Logger = a.log
	return (&authoring.Serve{Config: c, In: a.in, Out: a.out}).Run(ctx)
}

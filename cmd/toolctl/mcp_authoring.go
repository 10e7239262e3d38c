package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/authoring"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp/server"
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
	dir, err := a.stored(ctx).AuthoringFolder()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return usagef("-f: %w", err)
	}
	defer root.Close()
	check, err := a.config(ctx).Checking(action.Reading{})
	if err != nil {
		return err
	}
	a.log = slog.New(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	g, err := gateway.Open(ctx, gateway.Options{
		Objects: authoring.Tools(authoring.Options{Root: root, Check: check, LockFile: a.conf.Gateway.LockFile}), Env: a.env, Logger: a.log,
		Version: buildVersion().Version, Server: server.Options{Name: "toolctl-authoring", Instructions: authoring.Instructions},
		Limits: admission.Limits{MaxCalls: 256, MaxResultBytes: 1 << 20},
	})
	if err != nil {
		return err
	}
	defer a.closing(g)
	return g.ServeStdio(ctx, a.in, a.out)
}

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/action"
)

func newMCPCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "mcp",
		Short: "Add, list and remove MCP servers in the store",
		Long: `Add, list and remove MCP servers in the store. 'toolctl mcp connect' stores a server as an
MCPServer manifest: a running 'toolctl serve --watch' on the store serves its tools at
once, and again after a restart, until you disconnect the server.

'toolctl mcp authoring' is itself an MCP server, for agents that write manifests.`,
		Example: `  toolctl mcp connect -- npx -y @modelcontextprotocol/server-memory
  toolctl mcp connect --name docs https://mcp.example.com/mcp
  toolctl mcp list
  toolctl mcp disconnect docs
  claude mcp add toolctl-authoring -- toolctl mcp authoring`,
	}, newMCPConnectCmd(a), newMCPDisconnectCmd(a), newMCPListCmd(a), newMCPAuthoringCmd(a))
}

type mcpConnectOptions struct {
	*app
	action.Connect
}

func newMCPConnectCmd(a *app) *cobra.Command {
	o := &mcpConnectOptions{app: a}
	cmd := &cobra.Command{
		Use:   "connect [flags] (-- COMMAND [ARG]... | URL)",
		Short: "Add an MCP server to the store",
		Long: `Add an MCP server to the store: a command that speaks MCP over stdio, or a URL. toolctl
first queries the tools of the server, and does not add a server that gives no answer,
unless you pass --no-check. toolctl stores nothing that looks like a secret: an environment
variable replaces it, which must be set wherever the server is used.`,
		Example: `  toolctl mcp connect -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  toolctl mcp connect --name docs --env API_KEY -- docs-server --stdio`,
		Args: commandOrURL,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Words = args
			return o.run(cmd.Context())
		},
	}
	bindServer(cmd, &o.ServerWords)
	cmd.Flags().BoolVar(&o.Unasked, "no-check", false, "add the server without querying it")
	cmd.Flags().BoolVar(&o.Replace, "replace", false, "replace an existing server with this name")
	a.bindNetwork(cmd.Flags(), "")
	return cmd
}

func (o *mcpConnectOptions) run(ctx context.Context) (err error) {
	o.Config = o.reaching(ctx)
	r, err := o.Run(ctx)
	for _, n := range r.Notes {
		fmt.Fprintf(o.err, "warning: %s\n", clip.Line(inspect.Show(n)))
	}
	if err != nil {
		return err
	}
	text := objectName(r.Server) + " connected"
	if r.Tools >= 0 {
		text += ": " + count(r.Tools, "tool")
	}
	_, err = fmt.Fprintln(o.out, text)
	return err
}

func newMCPDisconnectCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "disconnect NAME...",
		Short: "Remove MCP servers that were added with connect",
		Long: `Remove MCP servers that were added with 'toolctl mcp connect'. To remove servers that were
added with 'toolctl apply', use 'toolctl delete'.`,
		Example:           "  toolctl mcp disconnect docs",
		ValidArgsFunction: a.completeNames(v1.KindMCPServer),
		Args:              someArgs("expected the name of a server: 'toolctl mcp list' shows them"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.disconnect(cmd.Context(), args) },
	}
}

func (a *app) disconnect(ctx context.Context, names []string) error {
	keys, err := (&action.Disconnect{Config: a.stored(ctx), Names: names}).Run(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		fmt.Fprintf(a.out, "%s disconnected\n", objectName(k))
	}
	return nil
}

func newMCPListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the MCP servers in the store",
		Long: `List the MCP servers in the store, and whether connect or apply added them. The command
starts no server; 'toolctl list tools' queries them.`,
		Annotations: formats("table", "json", "yaml"),
		Example: `  toolctl mcp list
  toolctl mcp list -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listConnected(cmd.Context()) },
	}
}

func (a *app) listConnected(ctx context.Context) error {
	all, err := (&action.Connections{Config: a.stored(ctx)}).Run(ctx)
	if err != nil {
		return err
	}
	if done, err := a.encoded(a.format(), map[string]any{"items": all}); done {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.out, "no MCP servers")
		return err
	}
	t := newTable(a.out, "NAMESPACE", "NAME", "SOURCE", "TRANSPORT", "ADDRESS")
	for _, c := range all {
		t.row(c.Namespace, c.Name, c.Source, c.Transport, c.Address)
	}
	return t.Flush()
}

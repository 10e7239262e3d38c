package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
)

func newMCPCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "mcp",
		Short: "Connect MCP servers, and serve tools to agents that write manifests",
		Long: `Connect MCP servers by hand. A server that is connected is put into the store as
an MCPServer manifest: a 'toolctl serve --watch' that runs on the store has its
tools at once, and has them again after a restart, until it is disconnected.

'toolctl mcp authoring' is an MCP server itself, for agents that write manifests.`,
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
		Short: "Connect an MCP server",
		Long: `Connect an MCP server: a command that speaks MCP over stdio, or a URL. The server
is asked for its tools first, and one that does not answer is not connected, unless
--no-check says so. What looks like a secret is not stored: a variable of the
environment stands in for it, and must be set where the server is used.`,
		Example: `  toolctl mcp connect -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  toolctl mcp connect --name docs --env API_KEY -- docs-server --stdio`,
		Args: commandOrURL,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Words = args
			return o.run(cmd.Context())
		},
	}
	bindServer(cmd, &o.ServerWords)
	cmd.Flags().BoolVar(&o.Unasked, "no-check", false, "connect without asking the server")
	cmd.Flags().BoolVar(&o.Replace, "replace", false, "take the place of a server of the same name")
	a.bindNetwork(cmd.Flags(), "")
	return cmd
}

func (o *mcpConnectOptions) run(ctx context.Context) (err error) {
	if o.Config, err = o.reaching(ctx); err != nil {
		return err
	}
	o.Noted, o.Offers = o.printNotes, o.warnOffered("cannot be used")
	r, err := o.Run(ctx)
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
		Short: "Disconnect MCP servers that were connected by hand",
		Long: `Disconnect MCP servers that were connected with 'toolctl mcp connect'. Those that
came with 'toolctl apply' are removed with 'toolctl delete'.`,
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
		Short: "List the MCP servers of the store",
		Long: `List the MCP servers of the store, and whether they came with connect or apply. No
server is started: 'toolctl list tools' asks them.

Output formats (-o): table, json, yaml.`,
		Annotations: formats("table", "json", "yaml"),
		Example: `  toolctl mcp list
  toolctl mcp list -o json`,
		Args: noArgs,
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

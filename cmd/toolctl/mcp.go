package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/store"
)

// connectedSet is the apply set of the servers that were connected by hand, so that no
// apply prunes them.
const connectedSet = "mcp-connect"

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

// openConnected opens the store that servers are connected to.
func (a *app) openConnected(ctx context.Context, create bool) (store.Store, error) {
	if len(a.files) > 0 {
		return nil, usagef("servers are connected in the store, not in files: leave out -f, and name the store with --store where it is not the usual one")
	}
	return a.openStore(ctx, create)
}

type mcpConnectOptions struct {
	*app
	serverFlags
	noCheck bool
	replace bool
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
			if _, err := a.network(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args)
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVar(&o.noCheck, "no-check", false, "connect without asking the server")
	cmd.Flags().BoolVar(&o.replace, "replace", false, "take the place of a server of the same name")
	a.bindNetwork(cmd.Flags(), "")
	return cmd
}

func (o *mcpConnectOptions) run(ctx context.Context, words []string) error {
	server, notes, err := o.server(words)
	if err != nil {
		return err
	}
	server.Metadata.Namespace = o.namespace
	if o.namespace != "" && !v1.IsName(o.namespace) {
		return usagef("-n %q is not a legal name of a namespace", o.namespace)
	}
	o.printNotes(notes)
	tools := -1
	if !o.noCheck {
		offered, err := o.offered(ctx, server, "cannot be used")
		if err != nil {
			return err
		}
		tools = len(offered)
	}
	s, err := o.openConnected(ctx, true)
	if err != nil {
		return err
	}
	defer o.closing(s)
	opts := store.ApplyOptions{Set: connectedSet, By: o.whoami(), Command: "mcp connect"}
	if !o.replace {
		opts.Expect = map[v1.Key]int64{server.Key(): 0}
	}
	if _, err := s.Apply(ctx, []v1.Object{server}, opts); err != nil {
		if _, ok := errors.AsType[*store.ConflictError](err); ok {
			return usagef("there is a server %q already: choose another --name, or take its place with --replace", server.Metadata.Name)
		}
		return err
	}
	text := objectName(server.Key()) + " connected"
	if tools >= 0 {
		text += ": " + count(tools, "tool")
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
	s, err := a.openConnected(ctx, false)
	if err != nil {
		return err
	}
	defer a.closing(s)
	var keys []v1.Key
	for _, name := range names {
		key := v1.Key{Kind: v1.KindMCPServer, Namespace: a.namespace, Name: name}
		if ns, local, ok := strings.Cut(name, "/"); ok {
			key.Namespace, key.Name = ns, local
		}
		key.Namespace = cmp.Or(key.Namespace, v1.DefaultNamespace)
		rec, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		if rec.Set != connectedSet {
			return usagef("%s came with 'toolctl apply', not with connect: remove its manifest, or use 'toolctl delete %s'", objectName(key), objectName(key))
		}
		keys = append(keys, key)
	}
	if _, err := s.Delete(ctx, keys, store.DeleteOptions{By: a.whoami(), Command: "mcp disconnect"}); err != nil {
		return err
	}
	for _, k := range keys {
		fmt.Fprintf(a.out, "%s disconnected\n", objectName(k))
	}
	return nil
}

// connection is a server as 'mcp list -o json' prints it.
type connection struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Source is "connect" or "apply".
	Source string `json:"source"`
	// Transport is stdio, streamable_http or sse, and Address the program or the URL
	// without what may be secret.
	Transport string `json:"transport"`
	Address   string `json:"address"`
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
	format := a.format()
	s, err := a.openConnected(ctx, false)
	if err != nil {
		return err
	}
	defer a.closing(s)
	list, err := s.List(ctx, store.ListOptions{Kind: v1.KindMCPServer, Namespace: a.namespace})
	if err != nil {
		return err
	}
	all := []connection{}
	for _, r := range list.Records {
		m, ok := r.Object.(*v1.MCPServer)
		if !ok {
			continue
		}
		c := connection{Name: m.Metadata.Name, Namespace: m.Namespace(), Source: "apply", Transport: "stdio", Address: m.Spec.Command}
		if r.Set == connectedSet {
			c.Source = "connect"
		}
		if m.Spec.URL != "" {
			c.Transport, c.Address = m.Spec.Transport, redact.URL(m.Spec.URL)
			c.Transport = cmp.Or(c.Transport, v1.TransportStreamableHTTP)
		}
		all = append(all, c)
	}
	servers := struct {
		Items []connection `json:"items"`
	}{all}
	if done, err := a.encoded(format, servers); done {
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

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/mcpconfig"
)

type importMCPOptions struct {
	manifestWriter
	serverFlags
	tools bool
}

// serverFlags are what a command line says of an MCP server beside its command or URL.
type serverFlags struct {
	name      string
	transport string
	env       []string
}

func newImportMCPCmd(a *app) *cobra.Command {
	o := &importMCPOptions{manifestWriter: manifestWriter{app: a}}
	cmd := &cobra.Command{
		Use:   "mcp [flags] (-- COMMAND [ARG]... | URL)",
		Short: "Make the manifest of one MCP server, and of its tools",
		Long: `Make the manifest of one MCP server: a command that speaks MCP over stdio, or a
URL. With --tools the server is asked, and there is a Tool manifest of mode mcp for
each tool that it offers; without, nothing is started.`,
		Example: `  toolctl import mcp -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  toolctl import mcp --name docs --tools https://mcp.example.com/mcp --out tools/`,
		Args: commandOrURL,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := a.network(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args)
		},
	}
	o.serverFlags.bind(cmd)
	cmd.Flags().BoolVar(&o.tools, "tools", false, "ask the server, and make a Tool manifest for each of its tools")
	a.bindNetwork(cmd.Flags(), "with --tools, ")
	o.flags(cmd)
	return cmd
}

func (s *serverFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.name, "name", "", "name of the server (default: of the package, the program or the host)")
	f.StringVar(&s.transport, "transport", "", "transport of a URL: streamable_http or sse (default: streamable_http)")
	f.StringArrayVar(&s.env, "env", nil, "variable of the command as NAME=VALUE, or NAME for the environment's own; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("transport", cobra.FixedCompletions([]string{v1.TransportStreamableHTTP, v1.TransportSSE}, noFiles))
}

// server makes the manifest of a server, and notes on what it was given in place of secrets.
func (s *serverFlags) server(words []string) (*v1.MCPServer, []string, error) {
	if s.name != "" && !v1.IsName(s.name) {
		return nil, nil, usagef("--name %q is not a legal name: expected lower-case letters, digits, '-', '_' and '.'", s.name)
	}
	server, notes, err := mcpconfig.Server(s.name, words)
	if err != nil {
		return nil, nil, invalidInput(err)
	}
	server.Spec.Transport = s.transport
	for _, e := range s.env {
		name, value, given := strings.Cut(e, "=")
		if !given {
			value = "${" + name + "}"
		}
		if server.Spec.Env == nil {
			server.Spec.Env = map[string]string{}
		}
		server.Spec.Env[name] = value
	}
	for _, f := range server.Validate() {
		if !f.IsWarning() {
			return nil, nil, usagef("%s", f.Message)
		}
	}
	return server, notes, nil
}

func (o *importMCPOptions) run(ctx context.Context, words []string) error {
	server, notes, err := o.server(words)
	if err != nil {
		return err
	}
	o.printNotes(notes)
	objects := []v1.Object{server}
	if o.tools {
		tools, err := o.ask(ctx, server, words)
		if err != nil {
			return err
		}
		for _, t := range tools {
			objects = append(objects, t)
		}
	}
	return o.write(objects)
}

// ask makes a Tool manifest for each tool that a server offers. The words are those
// of the command line: the manifest may have variables in place of their secrets.
func (o *importMCPOptions) ask(ctx context.Context, server *v1.MCPServer, words []string) ([]*v1.Tool, error) {
	asked := *server
	if asked.Spec.Command != "" {
		asked.Spec.Args = nil
		for _, w := range words[1:] {
			asked.Spec.Args = append(asked.Spec.Args, strings.ReplaceAll(w, "${", "$${"))
		}
	} else {
		asked.Spec.URL = words[0]
	}
	offered, err := o.offered(ctx, &asked, "was left out")
	var tools []*v1.Tool
	taken := map[string]bool{server.Metadata.Name: true}
	for _, found := range offered {
		t := v1.NewObject(v1.KindTool).(*v1.Tool)
		t.Spec = found.Tool.Spec
		t.Metadata.Name = freeName(server.Metadata.Name+"__"+mcpconfig.Name(found.Remote), taken)
		tools = append(tools, t)
	}
	return tools, err
}

// freeName returns a name that no other manifest has, and takes it.
func freeName(name string, taken map[string]bool) string {
	free := name
	for i := 2; taken[free]; i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	taken[free] = true
	return free
}

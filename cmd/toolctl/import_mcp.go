package main

import (
	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
)

func newImportMCPCmd(a *app) *cobra.Command {
	i, from := &importing{app: a}, &action.ImportServer{}
	cmd := &cobra.Command{
		Use:   "mcp [flags] (-- COMMAND [ARG]... | URL)",
		Short: "Generate the manifest of an MCP server, and of its tools",
		Long: `Generate the manifest of one MCP server: a command that speaks MCP over stdio, or a
URL. With --tools, toolctl queries the server and generates a Tool manifest of mode mcp
for each of its tools; without --tools, it starts nothing.`,
		Example: `  toolctl import mcp -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  toolctl import mcp --name docs --tools https://mcp.example.com/mcp --out tools/`,
		Args: commandOrURL,
		RunE: func(cmd *cobra.Command, args []string) error {
			i.Config, from.Words = a.reaching(cmd.Context()), args
			return i.run(cmd.Context(), from)
		},
	}
	bindServer(cmd, &from.ServerWords)
	cmd.Flags().BoolVar(&from.Tools, "tools", false, "query the server, and generate a Tool manifest for each of its tools")
	a.bindNetwork(cmd.Flags(), "with --tools, ")
	return i.bindNew(cmd)
}

// bindServer binds the flags that describe an MCP server in addition to its command or URL.
func bindServer(cmd *cobra.Command, s *action.ServerWords) {
	f := cmd.Flags()
	f.StringVar(&s.Name, "name", "", "name of the server (default: the name of the package, program or host)")
	f.StringVar(&s.Transport, "transport", "", "transport of a URL: streamable_http or sse (default: streamable_http)")
	f.StringArrayVar(&s.Env, "env", nil, "environment variable of the command as NAME=VALUE, or NAME to pass on the present value; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("transport", cobra.FixedCompletions([]string{v1.TransportStreamableHTTP, v1.TransportSSE}, noFiles))
}

package main

import (
	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newImportMCPConfigCmd(a *app) *cobra.Command {
	i := &importing{app: a}
	return i.bindNew(&cobra.Command{
		Use:   "mcp-config FILE",
		Short: "Generate MCPServer manifests from the configuration of an MCP client",
		Long: `Generate MCPServer manifests from the configuration of an MCP client: mcpServers (Claude
Desktop, Claude Code, Cursor and others), servers (mcp.json of VS Code), or
mcp_servers, as a map or a list. The file is JSON, with or without comments, or YAML.

${env:VAR} and ${input:name} become ${VAR}. A literal that looks like a secret becomes
a variable, and a warning names it. The command starts no server.`,
		Example: `  toolctl import mcp-config claude_desktop_config.json > servers.yaml
  toolctl import mcp-config .vscode/mcp.json --out servers/`,
		Args: exactArgs(1, "one file, or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return i.run(cmd.Context(), action.ImportFile{File: args[0], As: action.MCPConfig})
		},
	})
}

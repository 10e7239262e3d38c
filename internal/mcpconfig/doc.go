// Package mcpconfig turns the configuration files in which MCP clients keep their
// servers into MCPServer manifests.
//
//	servers, notes, err := mcpconfig.Read("claude_desktop_config.json", data)
//
// # What is read
//
// A file in JSON, with comments and trailing commas or without, or in YAML, that
// has one of these:
//
//	mcpServers            Claude Desktop, Claude Code, Cursor, Windsurf and others
//	servers, mcp.servers  mcp.json and settings.json of VS Code
//	mcp_servers           a map or a list with names
//	spec.mcp_servers      an Arena of PromptKit
//
// A field without a counterpart in an MCPServer, such as autoApprove, is left out with a note. A server that cannot be
// converted is an error that names it.
//
// # Variables
//
// ${env:VAR} becomes ${VAR}; ${input:my-key} becomes ${MY_KEY} with a note;
// ${userHome} becomes ${HOME}. Other text that looks like a variable is escaped.
//
// # Secrets
//
// A literal that looks like a key, a token or a password becomes ${VAR} with a
// note that names the variable and not the value. The rules are in secret.go. In doubt
// a literal counts as a secret, because manifests are kept in Git.
package mcpconfig

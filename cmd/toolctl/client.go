package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// clientConfig is the configuration file of an MCP client.
type clientConfig struct {
	file string // where the snippet goes, for people
	key  string // of the object of servers
	kind bool   // whether a server says its type
}

var clientConfigs = map[string]clientConfig{
	"claude": {".mcp.json (Claude Code) or claude_desktop_config.json (Claude Desktop, without --url)", "mcpServers", true},
	"cursor": {".cursor/mcp.json", "mcpServers", false},
	"vscode": {".vscode/mcp.json", "servers", true},
}

func newClientCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "client",
		Short: "Connect MCP clients to toolctl serve",
		Long:  "Connect MCP clients to 'toolctl serve'.",
		Args:  noSubcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Example: `  toolctl client config vscode -f manifests/
  toolctl client config cursor --url http://127.0.0.1:8080/mcp`,
	}
	cmd.AddCommand(newClientConfigCmd(a))
	return cmd
}

func newClientConfigCmd(a *app) *cobra.Command {
	var address, name string
	cmd := &cobra.Command{
		Use:   "config claude|cursor|vscode",
		Short: "Print the configuration that connects a client",
		Long: `Print the configuration that connects a client to 'toolctl serve': one that
starts it with the -f, --store, -n, --locked and --lock-file given here, or with
--url one that reaches it over HTTP. Where the configuration belongs is said on
stderr.`,
		Example: `  toolctl client config claude -f manifests/ > .mcp.json
  toolctl client config vscode --url http://127.0.0.1:8080/mcp`,
		Args:      exactArgs(1, "claude, cursor or vscode"),
		ValidArgs: []string{"claude", "cursor", "vscode"},
		RunE: func(_ *cobra.Command, args []string) error {
			client, ok := clientConfigs[args[0]]
			if !ok {
				return usagef("unknown client %q: expected claude, cursor or vscode", args[0])
			}
			entry, err := a.clientEntry(client, address)
			if err != nil {
				return err
			}
			text, err := json.MarshalIndent(map[string]any{client.key: map[string]any{name: entry}}, "", "  ")
			if err != nil {
				return err
			}
			fmt.Fprintf(a.err, "for %s:\n", client.file)
			fmt.Fprintf(a.out, "%s\n", text)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&address, "url", "", "address of a 'toolctl serve --http' that runs, such as http://127.0.0.1:8080/mcp")
	f.StringVar(&name, "name", "toolctl", "name of the server in the configuration")
	return cmd
}

// serverEntry is one server of a client's configuration.
type serverEntry struct {
	Type    string   `json:"type,omitempty"`
	URL     string   `json:"url,omitempty"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
}

// clientEntry makes the entry. A client starts programs in a folder of its own, so
// every path is absolute.
func (a *app) clientEntry(client clientConfig, address string) (serverEntry, error) {
	if address != "" {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return serverEntry{}, usagef("--url %q: expected an address such as http://127.0.0.1:8080/mcp", address)
		}
		e := serverEntry{URL: address}
		if client.kind {
			e.Type = "http"
		}
		return e, nil
	}
	program, err := os.Executable()
	if err != nil {
		return serverEntry{}, err
	}
	e := serverEntry{Command: program, Args: []string{"serve"}}
	if client.kind {
		e.Type = "stdio"
	}
	add := func(flag, path string) error {
		path, err := filepath.Abs(path)
		e.Args = append(e.Args, flag, path)
		return err
	}
	for _, path := range a.files {
		if path == "-" {
			return serverEntry{}, usagef("-f - cannot be kept in a configuration: name files or folders")
		}
		if err := add("-f", path); err != nil {
			return serverEntry{}, err
		}
	}
	if a.dsn != "" || len(a.files) == 0 {
		dsn, err := a.storeDSN(false)
		switch {
		case err != nil:
			return serverEntry{}, err
		case strings.Contains(dsn, ":"): // no path
			e.Args = append(e.Args, "--store", dsn)
		default:
			if err := add("--store", dsn); err != nil {
				return serverEntry{}, err
			}
		}
	}
	if a.lockFile != "" {
		if err := add("--lock-file", a.lockFile); err != nil {
			return serverEntry{}, err
		}
	}
	if a.locked {
		e.Args = append(e.Args, "--locked")
	}
	if a.namespace != "" {
		e.Args = append(e.Args, "-n", a.namespace)
	}
	return e, nil
}

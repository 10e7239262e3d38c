// Package mcpclients adds toolctl to the configuration of MCP clients. It knows the location of each client's
// file and the form of a server entry in it. It changes only the entry of that server: comments and all other
// text in the file stay unchanged.
package mcpclients

import (
	"os"
	"path/filepath"
	"runtime"
)

// Server describes a server for a client's configuration.
type Server struct {
	Name    string
	Command string
	Args    []string
	URL     string
	Token   string   // the variable that holds the bearer token, or ""
	Vars    []string // variables that the server needs, or the client to reach it
}

// Client is an MCP client and its configuration file.
type Client struct {
	Title string
	// Path returns the configuration file.
	Path      func() (string, error)
	StdioOnly bool
	// Literal is set for a client that does not support variables.
	Literal bool
	// Entry returns the server in the client's form. For a literal client, values returns the values of
	// variables; if it is nil, the entry contains placeholders.
	Entry func(s Server, values func(string) (string, bool)) any
	// Merge adds the entry to the text of the file, or replaces the entry with the same name.
	Merge func(file []byte, name string, entry any, s Server) ([]byte, error)
}

// jsonServer is an entry with the fields of all clients whose files are JSON or TOML, in file order.
type jsonServer struct {
	Type      string            `json:"type,omitempty"`
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	EnvVars   []string          `json:"env_vars,omitempty"`
	URL       string            `json:"url,omitempty"`
	ServerURL string            `json:"serverUrl,omitempty"`
	HTTPURL   string            `json:"httpUrl,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	TokenVar  string            `json:"bearer_token_env_var,omitempty"`
}

// All holds the clients by name, as their documentation describes them:
//
//	claude          code.claude.com/docs/en/mcp
//	claude-desktop  modelcontextprotocol.io/docs/develop/connect-local-servers
//	cursor          cursor.com/docs/mcp
//	vscode          code.visualstudio.com/docs/agent-customization/mcp-servers
//	windsurf        docs.windsurf.com/windsurf/cascade/mcp
//	zed             zed.dev/docs/ai/mcp
//	codex           developers.openai.com/codex/mcp
//	gemini          geminicli.com/docs/tools/mcp-server
//	goose           block.github.io/goose/docs/guides/config-files
var All = map[string]Client{
	"claude":         {Title: "Claude Code", Path: inFolder(".mcp.json"), Entry: jsonEntry("url", true, dollar), Merge: mergeJSON("mcpServers")},
	"claude-desktop": {Title: "Claude Desktop", Path: desktopFile, StdioOnly: true, Literal: true, Entry: jsonEntry("", false, nil), Merge: mergeJSON("mcpServers")},
	"cursor":         {Title: "Cursor", Path: inFolder(".cursor", "mcp.json"), Entry: jsonEntry("url", false, dollarEnv), Merge: mergeJSON("mcpServers")},
	"vscode":         {Title: "VS Code", Path: inFolder(".vscode", "mcp.json"), Entry: jsonEntry("url", true, dollarInput), Merge: mergeVSCode},
	"windsurf":       {Title: "Windsurf", Path: inHome(".codeium", "windsurf", "mcp_config.json"), Entry: jsonEntry("serverUrl", false, dollarEnv), Merge: mergeJSON("mcpServers")},
	"zed":            {Title: "Zed", Path: inHome(".config", "zed", "settings.json"), Literal: true, Entry: jsonEntry("url", false, nil), Merge: mergeJSON("context_servers")},
	"codex":          {Title: "Codex", Path: inHome(".codex", "config.toml"), Entry: codexEntry, Merge: mergeTOML},
	"gemini":         {Title: "Gemini CLI", Path: inHome(".gemini", "settings.json"), Entry: jsonEntry("httpUrl", false, dollar), Merge: mergeJSON("mcpServers")},
	"goose":          {Title: "goose", Path: inHome(".config", "goose", "config.yaml"), Entry: gooseEntry, Merge: mergeYAML("extensions")},
}

func dollar(name string) string      { return "${" + name + "}" }
func dollarEnv(name string) string   { return "${env:" + name + "}" }
func dollarInput(name string) string { return "${input:" + name + "}" }

func inFolder(parts ...string) func() (string, error) {
	return func() (string, error) { return filepath.Join(parts...), nil }
}

func inHome(parts ...string) func() (string, error) {
	return func() (string, error) {
		home, err := os.UserHomeDir()
		return filepath.Join(append([]string{home}, parts...)...), err
	}
}

func desktopFile() (string, error) {
	if runtime.GOOS == "linux" {
		return inHome(".config", "Claude", "claude_desktop_config.json")()
	}
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "Claude", "claude_desktop_config.json"), err
}

// jsonEntry returns the Entry function for the form that most clients share.
func jsonEntry(urlKey string, typed bool, variable func(string) string) func(Server, func(string) (string, bool)) any {
	return func(s Server, values func(string) (string, bool)) any {
		value := variable
		if value == nil {
			value = func(name string) string {
				if values != nil {
					v, _ := values(name)
					return v
				}
				return "VALUE_OF_" + name
			}
		}
		var e jsonServer
		if s.URL != "" {
			if typed {
				e.Type = "http"
			}
			*map[string]*string{"url": &e.URL, "serverUrl": &e.ServerURL, "httpUrl": &e.HTTPURL}[urlKey] = s.URL
			if s.Token != "" {
				e.Headers = map[string]string{"Authorization": "Bearer " + value(s.Token)}
			}
			return e
		}
		if typed {
			e.Type = "stdio"
		}
		e.Command, e.Args, e.Env = s.Command, s.Args, map[string]string{}
		for _, name := range s.Vars {
			e.Env[name] = value(name)
		}
		return e
	}
}

// codexEntry returns an entry for Codex, with the names of the variables that Codex passes to the server.
func codexEntry(s Server, _ func(string) (string, bool)) any {
	if s.URL != "" {
		return jsonServer{URL: s.URL, TokenVar: s.Token}
	}
	return jsonServer{Command: s.Command, Args: s.Args, EnvVars: s.Vars}
}

// gooseEntry returns an entry for goose, with the names of the variables that goose reads from its keyring or
// its environment.
func gooseEntry(s Server, _ func(string) (string, bool)) any {
	e := map[string]any{"enabled": true, "name": s.Name, "type": "stdio", "timeout": 300}
	if s.URL != "" {
		e["type"], e["uri"] = "streamable_http", s.URL
		if s.Token != "" {
			e["headers"] = map[string]string{"Authorization": "Bearer " + dollar(s.Token)}
		}
	} else {
		e["cmd"], e["args"] = s.Command, s.Args
	}
	if len(s.Vars) > 0 {
		e["env_keys"] = s.Vars
	}
	return e
}

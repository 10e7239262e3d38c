// Package mcpclients knows MCP clients: where their configuration is and how a server
// stands in it.
package mcpclients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
)

// Server is what a client has to know of a server.
type Server struct {
	Name    string
	Command string
	Args    []string
	URL     string
	Token   string   // the variable that holds the bearer token; "" for none
	Vars    []string // variables that the server, or the client for it, needs
}

// Client is an MCP client and its configuration file.
type Client struct {
	Title string
	// Path says where the file is.
	Path      func() (string, error)
	StdioOnly bool
	// Literal says that it has no syntax for variables.
	Literal bool
	// Entry is the server in the client's form. values are put in where it is literal;
	// nil puts in placeholders.
	Entry func(s Server, values func(string) (string, bool)) any
	// Merge puts the entry into the text of the file.
	Merge func(file []byte, name string, entry any, s Server) ([]byte, error)
}

// member is a member of an object, in the order of the file.
type member struct {
	Key   string
	Value any
}

// fields is a JSON object that keeps its order.
type fields []member

func (f fields) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range f {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := json.Marshal(m.Key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.Value)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}

// All are the clients by their names. They are known from their documentation:
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
	"vscode":         {Title: "VS Code", Path: inFolder(".vscode", "mcp.json"), Entry: jsonEntry("url", true, input), Merge: mergeVSCode},
	"windsurf":       {Title: "Windsurf", Path: inHome(".codeium", "windsurf", "mcp_config.json"), Entry: jsonEntry("serverUrl", false, dollarEnv), Merge: mergeJSON("mcpServers")},
	"zed":            {Title: "Zed", Path: inHome(".config", "zed", "settings.json"), Literal: true, Entry: jsonEntry("url", false, nil), Merge: mergeJSON("context_servers")},
	"codex":          {Title: "Codex", Path: inHome(".codex", "config.toml"), Entry: codexEntry, Merge: mergeTOML},
	"gemini":         {Title: "Gemini CLI", Path: inHome(".gemini", "settings.json"), Entry: jsonEntry("httpUrl", false, dollar), Merge: mergeJSON("mcpServers")},
	"goose":          {Title: "goose", Path: inHome(".config", "goose", "config.yaml"), Entry: gooseEntry, Merge: mergeYAML("extensions")},
}

func dollar(name string) string    { return "${" + name + "}" }
func dollarEnv(name string) string { return "${env:" + name + "}" }
func input(name string) string     { return "${input:" + name + "}" }

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

// jsonEntry makes an entry of the form that most clients share.
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
		var e fields
		add := func(key string, v any) { e = append(e, member{key, v}) }
		if s.URL != "" {
			if typed {
				add("type", "http")
			}
			add(urlKey, s.URL)
			if s.Token != "" {
				add("headers", map[string]string{"Authorization": "Bearer " + value(s.Token)})
			}
			return e
		}
		if typed {
			add("type", "stdio")
		}
		add("command", s.Command)
		add("args", s.Args)
		if len(s.Vars) > 0 {
			env := map[string]string{}
			for _, name := range s.Vars {
				env[name] = value(name)
			}
			add("env", env)
		}
		return e
	}
}

// codexEntry names variables, which Codex passes on.
func codexEntry(s Server, _ func(string) (string, bool)) any {
	if s.URL != "" {
		e := fields{{"url", s.URL}}
		if s.Token != "" {
			e = append(e, member{"bearer_token_env_var", s.Token})
		}
		return e
	}
	e := fields{{"command", s.Command}, {"args", s.Args}}
	if len(s.Vars) > 0 {
		e = append(e, member{"env_vars", s.Vars})
	}
	return e
}

// gooseEntry names variables, which goose takes from its keyring or its environment.
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

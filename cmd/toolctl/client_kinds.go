package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
)

// clientServer is what a client has to know of toolctl serve.
type clientServer struct {
	name    string
	command string
	args    []string
	url     string
	token   string   // the variable that holds the bearer token; "" for none
	vars    []string // variables that the server, or the client for it, needs
}

// client is an MCP client and its configuration file.
type client struct {
	title     string
	path      func() (string, error)
	stdioOnly bool
	literal   bool // it has no syntax for variables
	// entry is the server in the client's form. values are put in where it is literal;
	// nil puts in placeholders.
	entry func(s clientServer, values func(string) (string, bool)) any
	// merge puts the entry into the text of the file.
	merge func(file []byte, name string, entry any, s clientServer) ([]byte, error)
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

// clients are known from their documentation:
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
var clients = map[string]client{
	"claude":         {title: "Claude Code", path: inFolder(".mcp.json"), entry: jsonEntry("url", true, dollar), merge: mergeJSON("mcpServers")},
	"claude-desktop": {title: "Claude Desktop", path: desktopFile, stdioOnly: true, literal: true, entry: jsonEntry("", false, nil), merge: mergeJSON("mcpServers")},
	"cursor":         {title: "Cursor", path: inFolder(".cursor", "mcp.json"), entry: jsonEntry("url", false, dollarEnv), merge: mergeJSON("mcpServers")},
	"vscode":         {title: "VS Code", path: inFolder(".vscode", "mcp.json"), entry: jsonEntry("url", true, input), merge: mergeVSCode},
	"windsurf":       {title: "Windsurf", path: inHome(".codeium", "windsurf", "mcp_config.json"), entry: jsonEntry("serverUrl", false, dollarEnv), merge: mergeJSON("mcpServers")},
	"zed":            {title: "Zed", path: inHome(".config", "zed", "settings.json"), literal: true, entry: jsonEntry("url", false, nil), merge: mergeJSON("context_servers")},
	"codex":          {title: "Codex", path: inHome(".codex", "config.toml"), entry: codexEntry, merge: mergeTOML},
	"gemini":         {title: "Gemini CLI", path: inHome(".gemini", "settings.json"), entry: jsonEntry("httpUrl", false, dollar), merge: mergeJSON("mcpServers")},
	"goose":          {title: "goose", path: inHome(".config", "goose", "config.yaml"), entry: gooseEntry, merge: mergeYAML("extensions")},
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
func jsonEntry(urlKey string, typed bool, variable func(string) string) func(clientServer, func(string) (string, bool)) any {
	return func(s clientServer, values func(string) (string, bool)) any {
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
		if s.url != "" {
			if typed {
				add("type", "http")
			}
			add(urlKey, s.url)
			if s.token != "" {
				add("headers", map[string]string{"Authorization": "Bearer " + value(s.token)})
			}
			return e
		}
		if typed {
			add("type", "stdio")
		}
		add("command", s.command)
		add("args", s.args)
		if len(s.vars) > 0 {
			env := map[string]string{}
			for _, name := range s.vars {
				env[name] = value(name)
			}
			add("env", env)
		}
		return e
	}
}

// codexEntry names variables, which Codex passes on.
func codexEntry(s clientServer, _ func(string) (string, bool)) any {
	if s.url != "" {
		e := fields{{"url", s.url}}
		if s.token != "" {
			e = append(e, member{"bearer_token_env_var", s.token})
		}
		return e
	}
	e := fields{{"command", s.command}, {"args", s.args}}
	if len(s.vars) > 0 {
		e = append(e, member{"env_vars", s.vars})
	}
	return e
}

// gooseEntry names variables, which goose takes from its keyring or its environment.
func gooseEntry(s clientServer, _ func(string) (string, bool)) any {
	e := map[string]any{"enabled": true, "name": s.name, "type": "stdio", "timeout": 300}
	if s.url != "" {
		e["type"], e["uri"] = "streamable_http", s.url
		if s.token != "" {
			e["headers"] = map[string]string{"Authorization": "Bearer " + dollar(s.token)}
		}
	} else {
		e["cmd"], e["args"] = s.command, s.args
	}
	if len(s.vars) > 0 {
		e["env_keys"] = s.vars
	}
	return e
}

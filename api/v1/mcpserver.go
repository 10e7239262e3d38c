package v1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// MCPServer declares a server of the Model Context Protocol: a child process
// that speaks over stdio, or a URL. Its tools are named server__tool.
//
//	apiVersion: toolctl.dev/v1
//	kind: MCPServer
//	metadata:
//	  name: filesystem
//	spec:
//	  command: npx
//	  args: ["-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"]
//	  tool_filter:
//	    blocklist: ["write_*"]
type MCPServer struct {
	Header
	// Spec sets how toolctl reaches the server. Required.
	Spec MCPServerSpec `json:"spec" check:"required"`
}

// Transports of an MCP server that is reached by URL.
const (
	TransportStreamableHTTP = "streamable_http"
	TransportSSE            = "sse"
)

// How many processes of a server several gateways on one store start.
const (
	ReplicasEach = "each"
	ReplicasOne  = "one"
)

// MCPServerSpec says how a server is reached: command for stdio, or url.
type MCPServerSpec struct {
	// Description says what the server is for.
	Description string `json:"description,omitempty"`
	// Command is the program to start; it speaks MCP over its stdin and stdout. Example: npx.
	Command string `json:"command,omitempty"`
	// Args are the program's arguments; ${VAR} and ${VAR:-default} are read from the environment.
	// Every user of the machine can see them: secrets belong in env.
	// Example: ["-y", "@modelcontextprotocol/server-memory"].
	Args []string `json:"args,omitempty"`
	// Env sets variables of the program; ${VAR} and ${VAR:-default} are read from the environment.
	// Example: {API_KEY: "${FS_API_KEY}"}.
	Env map[string]string `json:"env,omitempty" check:"env"`
	// EnvPassthrough names variables that the program gets from the environment; without it
	// the program gets only PATH, HOME and what env sets. Example: [LANG].
	EnvPassthrough []string `json:"env_passthrough,omitempty"`
	// WorkingDir is the program's working directory, relative to the manifest. Default: the current one.
	WorkingDir string `json:"working_dir,omitempty" check:"path"`
	// Replicas is each, when every replica of the gateway starts the program for its own clients; or one, when a single
	// process serves the clients of all replicas, and the others reach it through the one that started it. Default: each.
	Replicas string `json:"replicas,omitempty" check:"oneof=each|one"`
	// URL is the server's address. ${VAR} is read from the environment. Example: https://mcp.example.com/mcp.
	URL string `json:"url,omitempty" check:"url"`
	// Headers are sent with every request; ${VAR} is read from the environment.
	Headers map[string]string `json:"headers,omitempty" check:"env"`
	// Transport is streamable_http or sse. Default: streamable_http.
	Transport string `json:"transport,omitempty" check:"oneof=streamable_http|sse"`
	// Auth sets how requests authenticate.
	Auth *Auth `json:"auth,omitempty"`
	// TLS sets certificates.
	TLS *TLS `json:"tls,omitempty"`
	// TimeoutMS is the time for one request in milliseconds. Default: the tool's timeout_ms. Example: 10000.
	TimeoutMS int `json:"timeout_ms,omitempty" check:"min=0"`
	// ConnectTimeoutMS is the time for start and initialisation in milliseconds. Default: 10000.
	ConnectTimeoutMS int `json:"connect_timeout_ms,omitempty" check:"min=0"`
	// ToolFilter chooses which of the server's tools exist.
	ToolFilter *ToolFilter `json:"tool_filter,omitempty"`
	// Overrides change tools of the server, by their name on the server.
	Overrides map[string]ToolOverride `json:"overrides,omitempty"`
	// ToolNames is prefixed (server__tool) or bare (the server's own names). Default: prefixed.
	ToolNames string `json:"tool_names,omitempty" check:"oneof=prefixed|bare"`
	// Locked refuses a tool whose definition differs from toolctl.lock. Default: false.
	Locked bool `json:"locked,omitempty"`
	// AllowPrivateNetwork permits url to lead to loopback, link-local, private and metadata addresses.
	// Default: true when url itself names a loopback host, else false.
	AllowPrivateNetwork *bool `json:"allow_private_network,omitempty"`
}

// ToolFilter chooses tools by their name on the server: exact names or patterns
// with a trailing "*". A tool that is blocked stays blocked even when it is allowed.
type ToolFilter struct {
	// Allowlist names the only tools that exist. An empty list allows none. Default: every tool. Example: ["read_*"].
	Allowlist []string `json:"allowlist,omitzero" check:"pattern"`
	// Blocklist names tools that do not exist. Example: [delete_file].
	Blocklist []string `json:"blocklist,omitempty" check:"pattern"`
}

// Allows reports whether the filter lets a tool exist; a nil filter allows all.
func (f *ToolFilter) Allows(tool string) bool {
	if f == nil {
		return true
	}
	fits := func(pattern string) bool { return MatchPattern(pattern, tool) }
	return !slices.ContainsFunc(f.Blocklist, fits) && (f.Allowlist == nil || slices.ContainsFunc(f.Allowlist, fits))
}

// ToolOverride replaces parts of a tool that a server offers.
type ToolOverride struct {
	// Description replaces the tool's description.
	Description string `json:"description,omitempty"`
	// Hints replace the tool's annotations.
	Hints *Hints `json:"hints,omitempty"`
	// InputSchema is the JSON Schema that replaces the tool's input schema.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	// Redact lists values to mask, like redact of a Tool.
	Redact []string `json:"redact,omitempty"`
	// TimeoutMS is the time for one call in milliseconds.
	TimeoutMS int `json:"timeout_ms,omitempty" check:"min=0"`
}

// Validate returns the violations of the server by its own rules.
func (m *MCPServer) Validate() []Violation {
	fs := append(m.Header.validate(), checkFields(m)...)
	s := &m.Spec
	add := func(path, expected, got, msg string) {
		fs = append(fs, Violation{Path: path, Expected: expected, Got: got, Message: msg})
	}
	switch {
	case s.Command == "" && s.URL == "":
		add("/spec", "command or url", "neither", "an MCPServer needs spec.command (stdio) or spec.url")
	case s.Command != "" && s.URL != "":
		add("/spec/url", "command or url", "both", "an MCPServer has spec.command or spec.url, not both")
	case s.Command == "":
		for field, set := range map[string]bool{"args": s.Args != nil, "env": s.Env != nil, "env_passthrough": s.EnvPassthrough != nil, "working_dir": s.WorkingDir != "", "replicas": s.Replicas != ""} {
			if set {
				add("/spec/"+field, "spec.command", "spec.url", fmt.Sprintf("spec.%s is for spec.command, not for spec.url", field))
			}
		}
	default:
		for field, set := range map[string]bool{"headers": s.Headers != nil, "transport": s.Transport != "", "auth": s.Auth != nil, "tls": s.TLS != nil} {
			if set {
				add("/spec/"+field, "spec.url", "spec.command", fmt.Sprintf("spec.%s is for spec.url, not for spec.command", field))
			}
		}
	}
	if n := m.Metadata.Name; strings.Contains(n, "__") {
		add("/metadata/name", "a name without \"__\"", quote(n), "the name of an MCPServer may not contain \"__\", which separates server and tool")
	}
	if a := s.Auth; a != nil {
		const want, message = "token_url or issuer", "credentials that were issued beforehand need token_url or issuer: without one they would be sent to whatever authorization server the MCP server names"
		if c := a.OAuth2ClientCredentials; c != nil && c.TokenURL == "" && c.Issuer == "" {
			add("/spec/auth/oauth2_client_credentials", want, "neither", message)
		}
		if c := a.OAuth2AuthorizationCode; c != nil && c.ClientIDEnv+c.ClientSecretEnv != "" && c.TokenURL == "" && c.Issuer == "" {
			add("/spec/auth/oauth2_authorization_code", want, "neither", message)
		}
	}
	for name, o := range s.Overrides {
		if len(o.InputSchema) > 0 {
			fs = append(fs, rootTypeViolations(Pointer("/spec/overrides", name, "input_schema"), o.InputSchema)...)
		}
	}
	return fs
}

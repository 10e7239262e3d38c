package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Options configure [Upstreams]. The zero value works.
type Options struct {
	// Env looks up an environment variable. Default: os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// AllowEnv lists the variables that manifests may read, as names or prefixes that end in *, such as
	// CRM_*. Default: all except the program's own (TOOLCTL_*, PG*, OTEL_*), which manifests may never read.
	AllowEnv []string
	// Logger receives the stderr lines of children, the log messages of servers and the events of sessions,
	// each with the server's name. Default: no logging.
	Logger *slog.Logger
	// AllowPrivateNetwork allows every URL to lead to loopback, link-local, private and metadata addresses, as
	// spec.allow_private_network does for one server. Default: false.
	AllowPrivateNetwork bool
	// AllowNetwork lists further addresses to which every URL may lead: CIDR or HOST, each with an optional
	// :PORT. Example: 10.0.0.0/8, mcp.internal:8443. Default: none.
	AllowNetwork []string
	// ConfigDir is the folder for the tokens of sign-ins, which are files of mode 0600. Default: tokens live as
	// long as the Upstreams.
	ConfigDir string
	// OnChange is called when the tools, prompts or resources of a server have changed, and when a server
	// becomes reachable again. The new content is in [Upstreams.State]. Each server's calls come from a
	// goroutine of its own. Default: no calls.
	OnChange func(server v1.Key)
	// OnListChanged is called after a server reported a change of a list, "tools", "prompts" or "resources",
	// and the lists were read again, even if they are the same. Default: no calls.
	OnListChanged func(server v1.Key, list string)
	// OpenBrowser shows a person the address for signing in to a server, and returns at once. Default: a server
	// that requires a sign-in is not ready.
	OpenBrowser func(ctx context.Context, server v1.Key, address string) error
	// Meta returns additional members for the _meta object of a call, such as traceparent (W3C Trace Context).
	// Default: none.
	Meta func(ctx context.Context) map[string]any
	// TracerProvider creates a span for each request to a server. Default: no spans.
	TracerProvider trace.TracerProvider
	// MeterProvider creates metrics for the requests to servers and for their readiness. Default: no metrics.
	MeterProvider metric.MeterProvider
	// Dial opens a stream of newline-delimited JSON-RPC to a server, instead of the connection defined in its
	// manifest. It returns nil, nil to use the manifest. It is for tests; see package mcptest. Default: none.
	Dial func(ctx context.Context, server v1.Key) (io.ReadWriteCloser, error)
	// Single determines which process owns a server that only one process may run (spec.replicas one). Default:
	// this process.
	Single Single
	// Name and Version describe this client to servers. Default: toolctl, dev.
	Name, Version string
	// MaxMessageBytes is the maximum size of a server's message. Default: 64 MiB.
	MaxMessageBytes int
	// MaxPeerSessions is the maximum number of client sessions of a server, see [Peer]. A further session
	// replaces the least recently used one; if all are in use, the call waits. Default: 64.
	MaxPeerSessions int
	// OnUpdate is called when a server reports a change of a resource for which [Upstreams.Subscribe] was
	// called. Default: no calls.
	OnUpdate func(server v1.Key, uri string)
	// StopTimeout is the time limit for each step of stopping a child: after its stdin was closed, and after
	// SIGTERM. Default: 2 seconds.
	StopTimeout time.Duration
	// Hurry, once closed, limits each step of stopping a child to a fifth of a second.
	Hurry <-chan struct{}
	// Now is the clock for back-offs. Default: time.Now.
	Now func() time.Time
}

// ServerState is the known state of one server.
type ServerState struct {
	// Key identifies the MCPServer manifest.
	Key v1.Key `json:"key"`
	// Ready means that the server answered the last query.
	Ready bool `json:"ready"`
	// Reason explains why the server is not ready; empty if it is ready.
	Reason string `json:"reason,omitempty"`
	// Err is the error behind Reason: a *[v1.MCPError], or a *[v1.ValidationError] if the manifest cannot be
	// used as it is.
	Err error `json:"-"`
	// Warnings list the parts of the server's responses that were omitted, and the parts of the manifest that
	// name tools which the server does not offer.
	Warnings []string `json:"warnings,omitempty"`
	// Transport is "stdio", "streamable_http", "sse" or "memory".
	Transport string `json:"transport"`
	// ProtocolVersion is the version of MCP that the session speaks. Example: 2025-11-25.
	ProtocolVersion string `json:"protocol_version,omitempty"`
	// ServerName, ServerVersion and Instructions are the server's description of itself.
	ServerName    string `json:"server_name,omitempty"`
	ServerVersion string `json:"server_version,omitempty"`
	Instructions  string `json:"instructions,omitempty"`
	// Latency is how long the server took to list its tools, without its start.
	Latency time.Duration `json:"latency_ns,omitempty"`
	// PID is the process ID of a running stdio server; otherwise 0.
	PID int `json:"pid,omitempty"`
	// Starts is the number of sessions opened so far.
	Starts int `json:"starts"`
	// LastSeen is the time at which the lists below were read. While the server is not ready, they are the last
	// known lists.
	LastSeen time.Time `json:"last_seen,omitzero"`
	// Tools are the tools that pass the filter, sorted by name, including broken tools.
	Tools []DiscoveredTool `json:"tools"`
	// Prompts, Resources and ResourceTemplates are sorted by name.
	Prompts           []Prompt           `json:"prompts,omitempty"`
	Resources         []Resource         `json:"resources,omitempty"`
	ResourceTemplates []ResourceTemplate `json:"resource_templates,omitempty"`
	// Stderr is the end of a stdio server's stderr, at most 64 KiB, with the values of variables masked.
	Stderr []byte `json:"-"`
}

// Why returns Reason without the name of the server, for use next to that name.
func (s *ServerState) Why() string {
	return strings.TrimPrefix(s.Reason, fmt.Sprintf("mcp server %q: ", s.Key.Name))
}

// Failure returns the error of a server that is not ready.
func (s *ServerState) Failure() error {
	if s.Err != nil {
		return s.Err
	}
	return &v1.MCPError{Server: s.Key.Name, Message: s.Reason}
}

// DiscoveredTool is a tool that a server offers.
type DiscoveredTool struct {
	// Tool is the tool as a manifest: mode mcp, bound to its server, with the server's namespace and labels and
	// the overrides applied. Its name is server__tool, or the server's own name with tool_names: bare. Its
	// Source names the server. A broken tool has its problem in Violations, so that a registry lists it as not
	// ready.
	Tool *v1.Tool `json:"tool"`
	// Remote is the tool's name on the server.
	Remote string `json:"remote"`
	// Problem explains why the tool cannot be called; empty if it can. The registry checks whether its schemas
	// compile.
	Problem string `json:"problem,omitempty"`

	// The fields as the server sent them, before overrides, for lock files.
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// Definition is the whole definition, unchanged.
	Definition json.RawMessage `json:"-"`
}

// Prompt is a prompt that a server offers.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	// Icons and Meta are unchanged values of the server.
	Icons json.RawMessage `json:"icons,omitempty"`
	Meta  json.RawMessage `json:"_meta,omitempty"`
}

// PromptArgument is one argument of a [Prompt].
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// Resource is a resource that a server offers.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	Size        *int64 `json:"size,omitempty"`
	// Annotations, Icons and Meta are unchanged values of the server.
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Icons       json.RawMessage `json:"icons,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// ResourceTemplate is a family of resources whose addresses follow a template (RFC 6570).
type ResourceTemplate struct {
	URITemplate string `json:"uriTemplate"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	// Annotations, Icons and Meta are unchanged values of the server.
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Icons       json.RawMessage `json:"icons,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// PromptResult is a prompt with its arguments filled in.
type PromptResult struct {
	Description string          `json:"description,omitempty"`
	Messages    []PromptMessage `json:"messages"`
	// Meta is the unchanged value of the server.
	Meta json.RawMessage `json:"_meta,omitempty"`
}

// PromptMessage is one message of a [PromptResult].
type PromptMessage struct {
	// Role is "user" or "assistant".
	Role    string  `json:"role"`
	Content v1.Part `json:"content"`
}

// CompletionRequest requests the values that an argument may have. Exactly one of Prompt and URITemplate is
// set.
type CompletionRequest struct {
	// Prompt is the name of a prompt.
	Prompt string
	// URITemplate is the template of a resource.
	URITemplate string
	// Argument is the argument's name, and Value is the text typed so far.
	Argument, Value string
	// Context holds the arguments that are already known.
	Context map[string]string
}

// Completion is the answer to a [CompletionRequest].
type Completion struct {
	Values []string `json:"values"`
	// Total is the number of all values; 0 if the server does not report it.
	Total   int  `json:"total,omitempty"`
	HasMore bool `json:"hasMore,omitempty"`
}

// Progress is one report of a running call.
type Progress struct {
	Progress float64 `json:"progress"`
	// Total is the final value of Progress; 0 if unknown.
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

type progressKey struct{}

// WithProgress returns a context whose [Upstreams.Call] requests progress from the server. It passes each
// report to f, one at a time, and all reports before Call returns. Reports that arrive faster than f
// returns are dropped.
func WithProgress(ctx context.Context, f func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

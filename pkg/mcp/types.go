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

// Options hold what [Upstreams] needs from outside. The zero value works.
type Options struct {
	// Env looks up an environment variable. Default: os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// AllowEnv lists the variables that manifests may read, as names or prefixes that end in *, such as
	// CRM_*. Default: all except the program's own (TOOLCTL_*, PG*, OTEL_*), which manifests may never read.
	AllowEnv []string
	// Logger takes the stderr lines of children, the log messages of servers and
	// what happens to sessions, each with the server's name. Default: nothing is logged.
	Logger *slog.Logger
	// AllowPrivateNetwork permits every URL to lead to loopback, link-local, private
	// and metadata addresses, as spec.allow_private_network does for one. Default: false.
	AllowPrivateNetwork bool
	// AllowNetwork permits every URL to lead to these besides the public internet: CIDR or
	// HOST, each with :PORT or without. Example: 10.0.0.0/8, mcp.internal:8443. Default: none.
	AllowNetwork []string
	// ConfigDir is the folder for the tokens of people who signed in, in files of
	// mode 0600. Default: tokens live as long as the Upstreams.
	ConfigDir string
	// OnChange is called after the tools, prompts or resources of a server turned
	// out to have changed: it said so, or a new session found others; and once a server
	// answers that could not be reached. What holds now is in [Upstreams.State]. It is called from a goroutine of its own for each server.
	OnChange func(server v1.Key)
	// OnListChanged is called after a server said that one of its lists changed, "tools",
	// "prompts" or "resources", and the lists were read again, be they other or not.
	// Default: nobody is told.
	OnListChanged func(server v1.Key, list string)
	// OpenBrowser shows a person the address at which to sign in to a server and
	// returns at once. Default: a server that asks for a sign-in is not ready.
	OpenBrowser func(ctx context.Context, server v1.Key, address string) error
	// Meta returns what a call carries in its _meta object, such as traceparent
	// (W3C Trace Context). Default: nothing.
	Meta func(ctx context.Context) map[string]any
	// TracerProvider makes a span of each request to a server. Default: none.
	TracerProvider trace.TracerProvider
	// MeterProvider counts and times requests to servers, and says which are ready. Default:
	// nothing is counted.
	MeterProvider metric.MeterProvider
	// Dial opens a stream of newline-delimited JSON-RPC to a server in place of what
	// its manifest says; nil, nil leaves the server to its manifest. It is for tests:
	// see package mcptest. Default: none.
	Dial func(ctx context.Context, server v1.Key) (io.ReadWriteCloser, error)
	// Single says which process has a server that only one may have (spec.replicas one).
	// Default: this one.
	Single Single
	// Name and Version are what servers are told of this client. Default: toolctl, dev.
	Name, Version string
	// MaxMessageBytes is the largest message that a server may send. Default: 64 MiB.
	MaxMessageBytes int
	// MaxPeerSessions is the most sessions that a server has for clients, see [Peer].
	// One more ends that which was not used for the longest time; when all are in use, a
	// call waits for one. Default: 64.
	MaxPeerSessions int
	// OnUpdate is called when a server says that a resource changed that
	// [Upstreams.Subscribe] asked it about. Default: nobody is told.
	OnUpdate func(server v1.Key, uri string)
	// StopTimeout is how long a child may take for each step of its end: after its
	// stdin was closed, and after SIGTERM. Default: 2 seconds.
	StopTimeout time.Duration
	// Hurry, once closed, makes each step of a child's end take a fifth of a second at most.
	Hurry <-chan struct{}
	// Now is the clock of back-offs. Default: time.Now.
	Now func() time.Time
}

// ServerState is what is known of one server.
type ServerState struct {
	// Key identifies the MCPServer manifest.
	Key v1.Key `json:"key"`
	// Ready says that the server answered when it was last asked.
	Ready bool `json:"ready"`
	// Reason says why the server is not ready; empty when it is.
	Reason string `json:"reason,omitempty"`
	// Err is the error behind Reason: a *[v1.MCPError], or a *[v1.ValidationError]
	// when the manifest cannot be used as it is.
	Err error `json:"-"`
	// Warnings say what of the server's answers was left out, and which parts of the
	// manifest name tools that the server does not offer.
	Warnings []string `json:"warnings,omitempty"`
	// Transport is "stdio", "streamable_http", "sse" or "memory".
	Transport string `json:"transport"`
	// ProtocolVersion is the version of MCP that the session speaks. Example: 2025-11-25.
	ProtocolVersion string `json:"protocol_version,omitempty"`
	// ServerName, ServerVersion and Instructions are what the server says of itself.
	ServerName    string `json:"server_name,omitempty"`
	ServerVersion string `json:"server_version,omitempty"`
	Instructions  string `json:"instructions,omitempty"`
	// Latency is how long the server took to list its tools, without its start.
	Latency time.Duration `json:"latency_ns,omitempty"`
	// PID is the process of a stdio server that runs; 0 else.
	PID int `json:"pid,omitempty"`
	// Starts counts the sessions that were opened.
	Starts int `json:"starts"`
	// LastSeen is when the lists below were read. While the server is not ready they
	// are the last known ones.
	LastSeen time.Time `json:"last_seen,omitzero"`
	// Tools are the tools that the filter lets exist, sorted by name, broken ones included.
	Tools []DiscoveredTool `json:"tools"`
	// Prompts, Resources and ResourceTemplates are sorted by name.
	Prompts           []Prompt           `json:"prompts,omitempty"`
	Resources         []Resource         `json:"resources,omitempty"`
	ResourceTemplates []ResourceTemplate `json:"resource_templates,omitempty"`
	// Stderr is the end of what a stdio server wrote to stderr, at most 64 KiB, with
	// the values of variables masked.
	Stderr []byte `json:"-"`
}

// Why is Reason without the name of the server in front, for where that stands beside it.
func (s *ServerState) Why() string {
	return strings.TrimPrefix(s.Reason, fmt.Sprintf("mcp server %q: ", s.Key.Name))
}

// Failure is the error of a server that is not ready.
func (s *ServerState) Failure() error {
	if s.Err != nil {
		return s.Err
	}
	return &v1.MCPError{Server: s.Key.Name, Message: s.Reason}
}

// DiscoveredTool is a tool that a server offers.
type DiscoveredTool struct {
	// Tool is the tool as a manifest: mode mcp, bound to its server, with the server's
	// namespace and labels and the overrides applied. Its name is server__tool, or the
	// server's own name with tool_names: bare. Its Source names the server. A broken
	// tool carries its problem in Violations, so that a registry lists it as not ready.
	Tool *v1.Tool `json:"tool"`
	// Remote is the tool's name on the server.
	Remote string `json:"remote"`
	// Problem says why the tool cannot be called; empty when it can. Whether a
	// schema compiles is the registry's to find.
	Problem string `json:"problem,omitempty"`

	// What the server said, before overrides, for lock files.
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// Definition is the whole definition as it came.
	Definition json.RawMessage `json:"-"`
}

// Prompt is a prompt that a server offers.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	// Icons and Meta are as the server gives them.
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
	// Annotations, Icons and Meta are as the server gives them.
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
	// Annotations, Icons and Meta are as the server gives them.
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Icons       json.RawMessage `json:"icons,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// PromptResult is a prompt with its arguments filled in.
type PromptResult struct {
	Description string          `json:"description,omitempty"`
	Messages    []PromptMessage `json:"messages"`
	// Meta is as the server gives it.
	Meta json.RawMessage `json:"_meta,omitempty"`
}

// PromptMessage is one message of a [PromptResult].
type PromptMessage struct {
	// Role is "user" or "assistant".
	Role    string  `json:"role"`
	Content v1.Part `json:"content"`
}

// CompletionRequest asks for the values that an argument may take. Exactly one of
// Prompt and URITemplate is set.
type CompletionRequest struct {
	// Prompt is the name of a prompt.
	Prompt string
	// URITemplate is the template of a resource.
	URITemplate string
	// Argument is the argument's name, and Value what was typed so far.
	Argument, Value string
	// Context holds the arguments that are known already.
	Context map[string]string
}

// Completion is the answer to a [CompletionRequest].
type Completion struct {
	Values []string `json:"values"`
	// Total is the number of all values; 0 when the server does not say.
	Total   int  `json:"total,omitempty"`
	HasMore bool `json:"hasMore,omitempty"`
}

// Progress is one report of a running call.
type Progress struct {
	Progress float64 `json:"progress"`
	// Total is what Progress counts to; 0 when it is not known.
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

type progressKey struct{}

// WithProgress returns a context whose [Upstreams.Call] asks the server for progress
// and hands each report to f, one at a time and all before Call returns. Reports that
// come faster than f takes them are left out.
func WithProgress(ctx context.Context, f func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

package gateway

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/permit"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/search/embedding"
	"toolctl.dev/toolctl/pkg/store"
)

// Options configure a [Gateway]. The zero value is a gateway without manifests.
type Options struct {
	// Source is the source of the manifests. Default: Store, or no manifests without a store.
	Source Source
	// Objects are served in addition to those of Source, and stay when Source changes. Use it for tools in Go, see
	// [registry.Func]. Default: no objects.
	Objects []v1.Object
	// Store keeps counts, pending calls, the audit log and overrides. The gateway does not close it. Default: they live
	// as long as the gateway, and there is no audit log.
	Store store.Store
	// AuditBestEffort lets calls continue when their record of intent cannot be written. Default: they are refused.
	AuditBestEffort bool
	// AuditRetention is the maximum age of audit records. While the gateway serves, older records are removed by one of
	// the processes that share a store. Default: no limit.
	AuditRetention time.Duration
	// Counters keep the counts of policies. Default: Store, or in memory without a store.
	Counters policy.Counters
	// Attachments hold the values that calls pass by reference. Default: a reference is an ordinary text.
	Attachments *registry.Attachments
	// Executors are used in addition to those of [executors.All]. Default: no others.
	Executors []registry.Executor
	// Rules are policy rules written in Go. Default: no rules.
	Rules []policy.Rule
	// Middleware wraps every call; the first is the outermost. Default: no middleware.
	Middleware []registry.Middleware
	// OnCall is called with each finished call, and OnPending with each call that starts to wait for approval. They
	// must not block. Default: nil.
	OnCall    func(registry.CallEvent)
	OnPending func(v1.PendingCall)
	// WrapExecutors may wrap all executors, for example in a recorder. Default: nil.
	WrapExecutors func([]registry.Executor) []registry.Executor
	// Watch follows the changes of Source: see [Gateway.Reload]. Default: changes are ignored.
	Watch bool

	// Env looks up an environment variable. Default: os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// AllowEnv lists the variables that manifests may read, as names or prefixes that end in *, such as CRM_*. Default:
	// all except the program's own (TOOLCTL_*, PG*, OTEL_*), which manifests may never read.
	AllowEnv []string
	// Permit says what the manifests of Source may do on this machine. Objects without permission are not ready, and
	// the others are served. Default: everything is permitted, but nothing for a Source that is a store shared by
	// several programs.
	Permit *permit.Rules
	// Logger receives log messages without secrets. Default: nothing is logged.
	Logger *slog.Logger
	// TracerProvider and MeterProvider create spans and metrics. Default: no spans and metrics.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Name and Version identify the gateway to MCP servers and clients. Default: "toolctl" and "dev".
	Name, Version string

	// AllowPrivateNetwork lets every tool and MCP server reach loopback and private addresses, regardless of Permit.
	// Default: only those whose manifests request it.
	AllowPrivateNetwork bool
	// AllowNetwork lists addresses that tools and MCP servers may reach in addition to the public internet: CIDR or
	// HOST, each with or without :PORT. Example: 10.0.0.0/8, db.internal:5432. Default: no addresses.
	AllowNetwork []string
	// Locked refuses tools that differ from the lock, for every MCP server. Default: only for servers with spec.locked.
	Locked bool
	// LockFile is the lock file. Default: toolctl.lock in the current folder or the nearest parent.
	LockFile string
	// ConfigDir is the folder for sign-ins to MCP servers. Default: toolctl in [os.UserConfigDir].
	ConfigDir string
	// OpenBrowser opens the address at which a person signs in to an MCP server. Default: a server that needs a sign-in
	// is not ready.
	OpenBrowser func(ctx context.Context, server v1.Key, address string) error
	// Hurry, when closed, ends the wait in Close: calls are cancelled and MCP servers killed.
	Hurry <-chan struct{}

	// ApprovalWait is how long a call that needs approval waits for the decision before its caller gets the answer
	// "pending". Default: no wait.
	ApprovalWait time.Duration
	// Replicas make this gateway one of several that serve the same Store. Only [Gateway.Serve] joins them. Default: no
	// other replicas.
	Replicas *Replicas
	// Subset selects the served manifests. Default: all.
	Subset Subset
	// Embeddings add a second rank to the searches of clients. Default: the words alone decide.
	Embeddings *embedding.Embedder
	// Server configures the MCP server, except its Admission. Name, Version, Logger, Hurry and the providers default to
	// those above.
	Server server.Options
	// Limits apply to the sum of all entry points.
	Limits admission.Limits
	// HTTP configures the access to [Gateway.Handler] and [Gateway.Serve]. Default: anyone who can connect has access.
	HTTP server.HTTPOptions
	// TokenFile is a file with bearer tokens in the form of [server.ReadTokens]. It replaces HTTP.Tokens and is read
	// again after changes. Default: no file.
	TokenFile string
}

// Subset selects the served objects. The zero value selects everything.
type Subset struct {
	// Namespace is the only served namespace. Default: all.
	Namespace string
	// Selector selects tools by labels, such as team=pay,tier!=old. Default: all.
	Selector string
	// Tools are tool names that may end in *. Default: all.
	Tools []string
	// Prompts are prompt names that may end in *. Only those prompts and the tools that they name are served. If it
	// selects a single prompt, the policy of that prompt applies to every call. Default: all.
	Prompts []string
	// Toolset is the address of a toolset, see [Gateway.Toolsets]. Only that toolset is served, at /mcp too. Default: all
	// toolsets, and everything at /mcp.
	Toolset string
}

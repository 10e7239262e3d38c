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
	"toolctl.dev/toolctl/pkg/store"
)

// Options say what a [Gateway] is made of. The zero value is a gateway without manifests.
type Options struct {
	// Source is where the manifests are. Default: Store; none without one.
	Source Source
	// Objects are there besides those of Source, and stay when they change. It is the place
	// for tools in Go, see [registry.Func]. Default: none.
	Objects []v1.Object
	// Store keeps counts, calls that wait for approval, the audit and overrides, and is not
	// closed with the gateway. Default: they live as long as the gateway, and there is no audit.
	Store store.Store
	// AuditBestEffort lets calls go on whose line of intent cannot be written. Default: they
	// are refused.
	AuditBestEffort bool
	// AuditRetention is how old lines of the audit may become; older ones are removed while the gateway serves, by one
	// of those that share a store. Default: they are kept.
	AuditRetention time.Duration
	// Counters keep the counts of policies. Default: Store; in memory without one.
	Counters policy.Counters
	// Attachments hold what calls name by reference. Default: a reference is a text like any other.
	Attachments *registry.Attachments
	// Executors carry out calls besides those of [executors.All]. Default: none.
	Executors []registry.Executor
	// Rules are rules of policies that are written in Go. Default: none.
	Rules []policy.Rule
	// Middleware goes around every call, the first outermost. Default: none.
	Middleware []registry.Middleware
	// OnCall and OnPending are told of calls that are over, and of those that begin to wait for
	// approval; they must not wait. Default: nobody is.
	OnCall    func(registry.CallEvent)
	OnPending func(v1.PendingCall)
	// WrapExecutors may put others around all executors, such as a recorder. Default: none.
	WrapExecutors func([]registry.Executor) []registry.Executor
	// Watch follows the changes of Source: see [Gateway.Reload]. Default: nothing is followed.
	Watch bool

	// Env looks up an environment variable. Default: os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// AllowEnv lists the variables that manifests may read, as names or prefixes that end in *, such as
	// CRM_*. Default: all except the program's own (TOOLCTL_*, PG*, OTEL_*), which manifests may never read.
	AllowEnv []string
	// Permit says what the manifests of Source may do on this machine. What it does not permit is
	// not ready, and the rest is served. Default: everything; nothing for a Source that is a store
	// which several programs share.
	Permit *permit.Rules
	// Logger takes what a person may want to know; no secrets. Default: nothing is logged.
	Logger *slog.Logger
	// TracerProvider and MeterProvider make spans and metrics. Default: none.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Name and Version are what the gateway says of itself to MCP servers and clients.
	// Default: "toolctl" and "dev".
	Name, Version string

	// AllowPrivateNetwork lets every tool and MCP server reach loopback and private addresses,
	// whatever Permit says.
	// Default: those that say so.
	AllowPrivateNetwork bool
	// AllowNetwork lets them reach these besides the public internet: CIDR or HOST, each with
	// :PORT or without. Example: 10.0.0.0/8, db.internal:5432. Default: none.
	AllowNetwork []string
	// Locked refuses tools of every MCP server that differ from the lock. Default: of those
	// with spec.locked.
	Locked bool
	// LockFile is the lock. Default: the nearest toolctl.lock, from the current folder upwards.
	LockFile string
	// ConfigDir is the folder where sign-ins to MCP servers are kept. Default: toolctl in
	// [os.UserConfigDir].
	ConfigDir string
	// OpenBrowser shows a person the address where to sign in to an MCP server. Default: a
	// server that needs it is not ready.
	OpenBrowser func(ctx context.Context, server v1.Key, address string) error
	// Hurry, once closed, ends what Close waits for: calls are cancelled and MCP servers killed.
	Hurry <-chan struct{}

	// ApprovalWait is how long a call that needs approval waits for the decision, wherever it is made,
	// before its caller is told that it is pending. Default: not at all.
	ApprovalWait time.Duration
	// Replicas make this gateway one of several that serve the same from one Store. Only
	// [Gateway.Serve] joins them. Default: it is alone.
	Replicas *Replicas
	// Subset is what of the manifests is served. Default: all.
	Subset Subset
	// Server configures the MCP server, but for its Admission. Name, Version, Logger, Hurry and the providers are those above
	// unless they are set.
	Server server.Options
	// Limits are what everything that is served is held to, in sum over all entrances.
	Limits admission.Limits
	// HTTP says who may use [Gateway.Handler] and [Gateway.Serve]. Default: anyone
	// who reaches it.
	HTTP server.HTTPOptions
	// TokenFile is a file of bearer tokens in the form of [server.ReadTokens], which takes the
	// place of HTTP.Tokens and is read again when it changes. Default: none.
	TokenFile string
}

// Subset chooses what is served. The zero value is everything.
type Subset struct {
	// Namespace is the only one that is served. Default: all.
	Namespace string
	// Selector chooses tools by labels, such as team=pay,tier!=old. Default: all.
	Selector string
	// Tools are names that may end in *. Default: all.
	Tools []string
	// Prompts are names that may end in *. Only those are served then, with the tools that they
	// name, and when it is one its policy holds for every call. Default: all.
	Prompts []string
}

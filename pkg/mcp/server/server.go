package server

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/replica"
)

// Options configure a [Server]. The zero value works.
type Options struct {
	// Name and Version are what the server reports about itself. Default: "toolctl" and "0".
	Name, Version string
	// Logger receives errors and warnings. Default: no logging.
	Logger *slog.Logger
	// AccessLog receives a line "call" for each call, at level INFO, or at WARN for a call that ended with an
	// error: call_id, tool, session, principal, status, duration_ms and error_type. Default: no logging.
	AccessLog *slog.Logger
	// PageSize is the maximum number of tools in one response to tools/list. Default: 1000.
	PageSize int
	// Admission limits calls and requests. Other handlers of the program that use the same Admission share its
	// limits. Default: a new one with the default limits.
	Admission *admission.Admission
	// TurnIdle ends the turn of calls without a turn name after their session had no running call for this
	// long. Default: 60 seconds.
	TurnIdle time.Duration
	// StreamAfter is how long a call in a session of 2025-11-25 may take before its response becomes a stream,
	// which the client can resume after a lost connection. For a call to an MCP server the limit is 50 ms.
	// Default: 10 s.
	StreamAfter time.Duration
	// Instructions describe to a model how to use the server. Default: those of the only MCP server, if the
	// catalog contains nothing else; otherwise a short text about calls.
	Instructions string
	// Discovery is how clients of /mcp find tools: list, search or auto, as in [v1.ToolsetSpec]. Default: that of
	// the toolset at /mcp, or list if there is none.
	Discovery string
	// Finder searches tools for clients. Default: none, and discovery is always list.
	Finder Finder
	// TracerProvider creates a span for each request, in the trace given by its _meta or its HTTP headers.
	// Default: no spans.
	TracerProvider trace.TracerProvider
	// MeterProvider creates metrics for requests. Default: no metrics.
	MeterProvider metric.MeterProvider
	// ShutdownDelay is how long a stopping server over HTTP still accepts requests while /readyz has status
	// 503, so that load balancers can stop sending requests. Default: 0.
	ShutdownDelay time.Duration
	// DrainTimeout is how long calls may continue after that before they are cancelled. Below 0 they are
	// cancelled at once. Default: 10 seconds.
	DrainTimeout time.Duration
	// Replica represents this process among replicas that serve the same content. Requests for the sessions and
	// calls of other replicas are forwarded to them. Default: no replicas.
	Replica *replica.Member
	// Hurry, once closed, ends ShutdownDelay and DrainTimeout.
	Hurry <-chan struct{}
}

// DefaultTurnIdle is the default for Options.TurnIdle.
const DefaultTurnIdle = 60 * time.Second

const (
	defaultPageSize = 1000
	// DefaultDrainTimeout is the default for [Options.DrainTimeout].
	DefaultDrainTimeout = 10 * time.Second
)

// Server is one MCP server for any number of clients. Create it with [New].
type Server struct {
	catalog Catalog
	opts    Options
	run     string // identifies this run of the server, for sessions without another name

	mu      sync.Mutex // held while the offers are rebuilt
	set     atomic.Pointer[snapshot]
	closers []func() // close the handlers; guarded by mu

	observer  *observer
	admission *admission.Admission
	calls     *admission.Calls // the Calls of admission
	sessions  sessions
	listeners listeners
	streams   streams
	indexes   indexes
	suspended suspendedCalls
	turns     *turns
	private   atomic.Bool // lists may differ between clients
}

// New returns a server for the content of a catalog. Call [Server.Refresh] when that content changes. A
// stopped server cannot be used again.
func New(c Catalog, o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.PageSize <= 0 {
		o.PageSize = defaultPageSize
	}
	if o.Admission == nil {
		o.Admission = admission.New(admission.Limits{})
	}
	if o.StreamAfter <= 0 {
		o.StreamAfter = 10 * time.Second
	}
	if o.TurnIdle <= 0 {
		o.TurnIdle = DefaultTurnIdle
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = DefaultDrainTimeout
	}
	if o.Finder == nil {
		o.Discovery = v1.DiscoveryList
	}
	s := &Server{catalog: c, opts: o, run: rand.Text(), admission: o.Admission, calls: o.Admission.Calls, turns: newTurns(o.TurnIdle)}
	s.suspended.seals = newSeals(o.Replica)
	if o.Replica != nil {
		o.Replica.Report(s.calls.Running.ByPrincipal)
		s.calls.Running.Elsewhere = o.Replica.Elsewhere
	}
	s.observer = newObserver(s, o.TracerProvider, o.MeterProvider)
	s.set.Store(&snapshot{all: new(offers)})
	s.Refresh()
	return s
}

// impl returns the server's description of itself.
func (s *Server) impl() *sdk.Implementation {
	return &sdk.Implementation{Name: cmp.Or(s.opts.Name, "toolctl"), Version: cmp.Or(s.opts.Version, "0")}
}

// newSessionID returns the ID for a new session. With replicas, each replica can find the owner in the ID.
func (s *Server) newSessionID() string {
	if s.opts.Replica != nil {
		return s.opts.Replica.SealSession([]byte(rand.Text()))
	}
	return rand.Text()
}

// Stopping returns a channel that is closed once the server accepts no more requests.
func (s *Server) Stopping() <-chan struct{} { return s.calls.Refused() }

// drain refuses new calls, lets running calls end and their responses be written within
// Options.DrainTimeout, and then cancels the rest. The returned channel is closed when all calls have ended
// and are answered.
func (s *Server) drain() <-chan struct{} {
	idle := s.calls.Refuse()
	s.endSuspended()
	answered := make(chan struct{})
	go func() { <-idle; s.calls.WaitRequests(); close(answered) }()
	patience := time.NewTimer(max(0, s.opts.DrainTimeout))
	defer patience.Stop()
	select {
	case <-answered:
	case <-s.opts.Hurry:
	case <-patience.C:
		s.opts.Logger.Warn("calls did not end in time and were cancelled")
	}
	s.calls.Stop()
	return answered
}

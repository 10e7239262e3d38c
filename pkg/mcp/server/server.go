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

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/replica"
)

// Options configure a [Server]; the zero value works.
type Options struct {
	// Name and Version are what the server says of itself. Default: "toolctl" and "0".
	Name, Version string
	// Logger takes a line for what goes wrong. Default: none.
	Logger *slog.Logger
	// AccessLog takes a line "call" for each call, at level INFO, at WARN for one that ended
	// with an error: call_id, tool, session, principal, status, duration_ms and error_type.
	// Default: none.
	AccessLog *slog.Logger
	// PageSize is the most tools in one answer of tools/list. Default: 1000.
	PageSize int
	// Admission holds calls and requests to its limits; whoever has it too, such as other handlers of the
	// program, shares them. Default: one of its own, with the default limits.
	Admission *admission.Admission
	// TurnIdle ends the turn of calls that name none, once their session had no call under way
	// for so long. Default: 60 seconds.
	TurnIdle time.Duration
	// StreamAfter is how long a call of a session of 2025-11-25 may take before its response becomes a
	// stream, which its client can take up again when the connection breaks; a JSON document cannot be.
	// A call that asks an MCP server has 50 ms. Default: 10 s.
	StreamAfter time.Duration
	// Instructions tell a model how to use the server. Default: those of the only MCP
	// server that is served, when nothing else is, else a few words on calls.
	Instructions string
	// TracerProvider makes a span of each request, which belongs to the trace that its _meta or
	// its HTTP headers name. Default: none.
	TracerProvider trace.TracerProvider
	// MeterProvider counts and times requests. Default: nothing is counted.
	MeterProvider metric.MeterProvider
	// ShutdownDelay is how long a server over HTTP that stops still takes requests, while /readyz has
	// status 503: a balancer sends it nothing more by then. Default: 0.
	ShutdownDelay time.Duration
	// DrainTimeout is how long calls may go on after that, before they are
	// cancelled. Default: 10 seconds. Below 0 they are cancelled at once.
	DrainTimeout time.Duration
	// Replica is this process among others that serve the same: sessions and calls that another
	// has are forwarded to that one. Default: there are no others.
	Replica *replica.Member
	// Hurry, once closed, ends ShutdownDelay and DrainTimeout.
	Hurry <-chan struct{}
}

// DefaultTurnIdle is Options.TurnIdle when it is not set.
const DefaultTurnIdle = 60 * time.Second

const (
	defaultPageSize = 1000
	// DefaultDrainTimeout is that of [Options.DrainTimeout].
	DefaultDrainTimeout = 10 * time.Second
)

// Server is one MCP server for any number of clients. Make it with [New].
type Server struct {
	catalog Catalog
	opts    Options
	run     string // names the life of this server, for sessions that have no other name

	mu      sync.Mutex // held while the list is made
	set     atomic.Pointer[offers]
	closers []func() // of handlers; under mu

	observer  *observer
	admission *admission.Admission
	calls     *admission.Calls // of admission
	sessions  sessions
	listeners listeners
	suspended suspendedCalls
	turns     *turns
	private   atomic.Bool // lists are for one client only
}

// New makes a server of what a catalog offers. Call [Server.Refresh] when that changes.
// A server that has stopped serves no more.
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
	s := &Server{catalog: c, opts: o, run: rand.Text(), admission: o.Admission, calls: o.Admission.Calls, turns: newTurns(o.TurnIdle)}
	s.suspended.seals = newSeals(o.Replica)
	if o.Replica != nil {
		o.Replica.Report(s.calls.Running.ByPrincipal)
		s.calls.Running.Elsewhere = o.Replica.Elsewhere
	}
	s.observer = newObserver(s, o.TracerProvider, o.MeterProvider)
	s.set.Store(new(offers))
	s.Refresh()
	return s
}

// impl is what the server says of itself.
func (s *Server) impl() *sdk.Implementation {
	return &sdk.Implementation{Name: cmp.Or(s.opts.Name, "toolctl"), Version: cmp.Or(s.opts.Version, "0")}
}

// newSessionID names a session: with replicas so that each knows whose it is.
func (s *Server) newSessionID() string {
	if s.opts.Replica != nil {
		return s.opts.Replica.SealSession([]byte(rand.Text()))
	}
	return rand.Text()
}

// Stopping returns a channel that is closed once the server takes no more requests.
func (s *Server) Stopping() <-chan struct{} { return s.calls.Refused() }

// drain lets the calls that run end within Options.DrainTimeout, and their answers be written, then cancels them.
// No call begins after it. What it returns closes when the last has ended and is answered.
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

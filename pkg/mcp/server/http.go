package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"syscall"
	"time"

	"toolctl.dev/toolctl/internal/access"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/replica"
)

// HTTPOptions configure [Server.ListenAndServe]. The zero value serves clients of this machine.
type HTTPOptions struct {
	// Tokens are the accepted bearer tokens. Default: no bearer token is required.
	Tokens *Tokens
	// OAuth makes the server accept OAuth access tokens, in addition to Tokens. Default: no access token is
	// required.
	OAuth *OAuth
	// BothLoopbacks makes the server also listen at the same port of the other loopback address (127.0.0.1,
	// ::1), and fail if that port is in use, because browsers try both addresses for a name below localhost.
	// Default: false.
	BothLoopbacks bool
	// Insecure allows an address that other machines can reach without authentication. Default: such an address
	// is refused.
	Insecure bool
	// TLS makes the server speak HTTPS. Default: HTTP.
	TLS *tls.Config
	// AllowedHosts are the host names accepted in the Host header, without port. Default: the names of this
	// machine's loopback if the server listens on a loopback address, otherwise any name.
	AllowedHosts []string
	// AllowedOrigins are web pages that may use the server, such as "http://localhost:6274"; they get CORS
	// headers. Default: none, so that browser requests from other origins are refused.
	AllowedOrigins []string
	// Stateless answers each request of clients of 2025-11-25 and older without a session, as for clients of
	// 2026-07-28. The clients need not send Mcp-Session-Id, and cannot receive requests or notifications.
	// Default: such clients have a session.
	Stateless bool
	// MaxSessions is the maximum number of sessions of clients of 2025-11-25 and older. A further session
	// replaces the one that was idle longest; if no session is idle, initialize gets status 503. Default: as
	// many as fit into a quarter of the memory budget at 20 KiB each.
	MaxSessions int
	// SessionTimeout is how long a session without requests and streams is kept. Default: 30 minutes.
	SessionTimeout time.Duration
	// Warning returns a problem that does not stop the server, for /readyz, which anyone may read; "" without a
	// problem. Default: always "".
	Warning func() string
	// NotReady returns why the server accepts no calls, for /readyz, which then has status 503 and which anyone
	// may read; "" if the server accepts calls. Default: always "".
	NotReady func() string
	// State returns additional fields for /readyz, which anyone may read. Default: none.
	State func() map[string]any
	// Routes are additional routes. Default: none.
	Routes []admission.Route
	// Now is the clock for tokens. Default: time.Now.
	Now func() time.Time
	// Mounts return routes that use [Access] to identify callers. The server checks the Host header and the
	// origin of their requests, and ends the requests when it stops. Default: none.
	Mounts []func(Access) []admission.Route
	// Listening is called once, with the address.
	Listening func(net.Addr)
}

// Default limits for HTTP.
const (
	sessionWeight         = 20 << 10 // bytes of a session
	defaultSessionTimeout = 30 * time.Minute

	headerTimeout  = 10 * time.Second       // for the client to send the headers of a request
	writeTimeout   = 30 * time.Second       // for the client to accept one piece of a replayed stream
	idleTimeout    = 120 * time.Second      // between two requests on a connection
	answerTimeout  = 500 * time.Millisecond // to write the responses of cancelled calls when the server stops
	cutTimeout     = time.Second            // after that, until connections are cut
	maxHeaderBytes = 64 << 10
)

func (o HTTPOptions) withDefaults(memory int64) HTTPOptions {
	set := func(n *int, d int) {
		if *n <= 0 {
			*n = d
		}
	}
	set(&o.MaxSessions, max(1, int(memory/4/sessionWeight)))
	if o.SessionTimeout <= 0 {
		o.SessionTimeout = defaultSessionTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Warning == nil {
		o.Warning = func() string { return "" }
	}
	if o.State == nil {
		o.State = func() map[string]any { return nil }
	}
	if o.NotReady == nil {
		o.NotReady = func() string { return "" }
	}
	return o
}

// ErrExposed means that other machines can reach an address without authentication: clients must
// authenticate, or HTTPOptions.Insecure must be set.
var ErrExposed = errors.New("it can be reached from other machines without authentication")

// ListenError explains why [Server.ListenAndServe] cannot listen on an address: the address is invalid or
// in use, or the error is [ErrExposed].
type ListenError struct {
	Address string
	Err     error
}

func (e *ListenError) Error() string {
	why := e.Err.Error()
	var op *net.OpError // the net errors repeat the address
	var addr *net.AddrError
	switch {
	case errors.As(e.Err, &addr):
		why = addr.Err
	case errors.As(e.Err, &op):
		why = op.Err.Error()
	}
	return fmt.Sprintf("listen on %s: %s", e.Address, why)
}

func (e *ListenError) Unwrap() error { return e.Err }

// ListenAndServe serves HTTP at an address until ctx ends: MCP at /mcp and, for each
// [Toolset], at /mcp/NAME, liveness at /healthz, and readiness
// at /readyz. After ctx ends, /readyz has status 503. After Options.ShutdownDelay the server accepts no
// more requests, ends the streams, lets calls continue for Options.DrainTimeout, ends the sessions, and
// returns nil at most two seconds later, regardless of the clients. Any other error means that it cannot
// serve.
func (s *Server) ListenAndServe(ctx context.Context, address string, o HTTPOptions) error {
	ln, err := Listen(ctx, address, o)
	if err != nil {
		return err
	}
	return s.Serve(ctx, ln, o)
}

// Listen listens on an address for [Server.Serve], if o allows it. The error is a [ListenError].
func Listen(ctx context.Context, address string, o HTTPOptions) (net.Listener, error) {
	const most = 16 // maximum number of free ports to try
	var lc net.ListenConfig
	for try := 1; ; try++ {
		ln, err := lc.Listen(ctx, "tcp", address)
		if err != nil {
			return nil, &ListenError{Address: address, Err: err}
		}
		if !isLoopback(ln.Addr()) && !o.authenticates() && !o.Insecure {
			return nil, errors.Join(&ListenError{Address: address, Err: ErrExposed}, ln.Close())
		}
		if !o.BothLoopbacks || !isLoopback(ln.Addr()) {
			return ln, nil
		}
		both, err := besides(ctx, ln)
		if _, port, _ := net.SplitHostPort(address); err == nil || port != "0" || try == most {
			return both, err
		}
	}
}

// loopbacks listens on one port of both loopback addresses.
type loopbacks struct {
	net.Listener
	beside net.Listener
}

func (l *loopbacks) Close() error { return errors.Join(l.Listener.Close(), l.beside.Close()) }

// besides makes the server also listen on the same port of the other loopback address, if the machine has
// that address. On an error it closes the listener.
func besides(ctx context.Context, ln net.Listener) (net.Listener, error) {
	at := ln.Addr().(*net.TCPAddr)
	other := net.TCPAddr{IP: net.IPv6loopback, Port: at.Port}
	if at.IP.To4() == nil {
		other.IP = net.IPv4(127, 0, 0, 1)
	}
	var lc net.ListenConfig
	beside, err := lc.Listen(ctx, "tcp", other.String())
	switch {
	case err == nil:
		return &loopbacks{ln, beside}, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errors.Join(&ListenError{Address: other.String(), Err: err}, ln.Close())
	}
	return ln, nil
}

// Serve does the same as [Server.ListenAndServe] with a listener from [Listen], which it closes.
func (s *Server) Serve(ctx context.Context, ln net.Listener, o HTTPOptions) error {
	defer s.calls.Refuse() // for every way to return
	o = o.withDefaults(s.admission.Limits().MemoryBudget)
	local := isLoopback(ln.Addr())
	if o.authenticates() {
		s.private.Store(true)
	}
	d, err := newEndpoint(s, o, func(*http.Request) bool { return local })
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer readKeys(d.verifier)()
	srv := &http.Server{
		Handler: s.routes(d, o), TLSConfig: o.TLS, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, new(connection))
		},
	}
	if o.Listening != nil {
		o.Listening(ln.Addr())
	}
	all := []net.Listener{ln}
	if l, ok := ln.(*loopbacks); ok {
		all = []net.Listener{l.Listener, l.beside}
	}
	served := make(chan error, len(all))
	for _, ln := range all {

		go func() {
			if o.TLS != nil {
				served <- srv.ServeTLS(ln, "", "")
				return
			}
			served <- srv.Serve(ln)
		}()
	}
	var failed error
	open := len(all)
	select {
	case failed = <-served:
		open--
	case <-ctx.Done():
		s.leave()
	}
	s.shutdown(srv)
	for range open {
		if err := <-served; failed == nil && !errors.Is(err, http.ErrServerClosed) {
			failed = err
		}
	}
	return failed
}

// leave announces the stop of the server to load balancers for Options.ShutdownDelay. The server still
// accepts requests during that time.
func (s *Server) leave() {
	s.calls.Announce()
	delay := time.NewTimer(s.opts.ShutdownDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-s.opts.Hurry:
	}
}

// shutdown stops accepting connections, drains the calls, and then cuts the remaining connections.
func (s *Server) shutdown(srv *http.Server) {
	ctx, late := context.WithCancel(context.Background())
	defer late()
	closing := make(chan struct{})
	s.calls.Refuse()
	go func() {
		defer close(closing)
		if err := srv.Shutdown(ctx); err != nil {
			s.opts.Logger.Warn("connections did not end in time and were closed", slog.Any("error", err))
			_ = srv.Close()
		}
	}()
	answered := s.drain()
	defer time.AfterFunc(cutTimeout, late).Stop()
	s.end(answered) // ends the streams too, for which Shutdown waits
	<-closing
	s.sessions.ending.Wait()
}

// end ends the sessions and their streams after the calls have ended.
func (s *Server) end(answered <-chan struct{}) {
	patience := time.NewTimer(answerTimeout)
	defer patience.Stop()
	select {
	case <-answered:
	case <-patience.C: // the other calls wait for their clients, or their clients do not read
	}
	s.endSessions()
	<-answered
}

// routes lists all entrances of the server.
func (s *Server) routes(d *endpoint, o HTTPOptions) *admission.Routes {
	all := append(d.routes(), []admission.Route{
		{Pattern: "GET /healthz", Kind: admission.Of(admission.KindProbe), Enter: admission.Open(http.HandlerFunc(healthz))},
		{Pattern: "GET /readyz", Kind: admission.Of(admission.KindProbe), Enter: admission.Open(d.readyz(o))},
	}...)
	all = append(all, o.Routes...)
	if s.opts.Replica != nil {
		all = append(all, admission.Route{Pattern: replica.Path, Kind: kindOf, Enter: d.enterForwarded})
	}
	if d.opts.OAuth != nil {
		all = append(all, d.opts.OAuth.metadataRoutes()...)
	}
	for _, mount := range o.Mounts {
		for _, route := range mount(Access{d}) {
			all = append(all, d.mounted(route))
		}
	}
	return s.admission.Routes(all...)
}

func healthz(w http.ResponseWriter, _ *http.Request) {
	writeState(w, http.StatusOK, map[string]any{"alive": true})
}

func (d *endpoint) readyz(o HTTPOptions) http.HandlerFunc {
	s := d.server
	return func(w http.ResponseWriter, _ *http.Request) {
		state, code := map[string]any{"ready": true, "tools": len(s.offers("").listed)}, http.StatusOK
		if s.calls.Leaving() {
			state, code = map[string]any{"ready": false, "reason": admission.ErrStopping.Error()}, http.StatusServiceUnavailable
		} else if text := o.NotReady(); text != "" {
			state, code = map[string]any{"ready": false, "reason": text}, http.StatusServiceUnavailable
		}
		if text := o.Warning(); text != "" {
			state["warning"] = text
		} else if d.verifier != nil && !d.verifier.Ready() {
			state["warning"] = access.ErrUnavailable.Error()
		}
		maps.Copy(state, o.State())
		writeState(w, code, state)
	}
}

func writeState(w http.ResponseWriter, code int, state map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(state) // the client may have gone
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

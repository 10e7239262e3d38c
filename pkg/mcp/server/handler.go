package server

import (
	"log/slog"
	"net"
	"net/http"
)

// Validate returns an error if the options are invalid.
func (o HTTPOptions) Validate() error {
	if o.OAuth != nil {
		if err := o.OAuth.Validate(); err != nil {
			return err
		}
	}
	_, err := o.crossOrigin()
	return err
}

// crossOrigin returns the protection against cross-origin requests, which lets AllowedOrigins pass.
func (o *HTTPOptions) crossOrigin() (*http.CrossOriginProtection, error) {
	cross := http.NewCrossOriginProtection()
	for _, origin := range o.AllowedOrigins {
		if err := cross.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return cross, nil
}

// Handler returns a handler with the routes of [Server.Serve] for an HTTP server of the calling program. It
// serves until [Server.Close]. Requests to a loopback address must have a Host header with a loopback name.
// The calling program is responsible for the listener, TLS, connection timeouts and network exposure:
// Handler ignores HTTPOptions.Insecure. With invalid options, the handler refuses all requests.
func (s *Server) Handler(o HTTPOptions) http.Handler {
	o = o.withDefaults(s.admission.Limits().MemoryBudget)
	if o.authenticates() {
		s.private.Store(true)
	}
	d, err := newEndpoint(s, o, func(r *http.Request) bool {
		at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		return ok && isLoopback(at)
	})
	if err != nil {
		s.opts.Logger.Error("the handler refuses all requests", slog.Any("error", err))
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the options of the server are invalid: see its log", http.StatusInternalServerError)
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, readKeys(d.verifier))
	return s.routes(d, o)
}

// Close refuses new calls, lets running calls continue for Options.DrainTimeout, and ends the sessions.
// Serve and ServeStdio do this by themselves.
func (s *Server) Close() {
	s.end(s.drain())
	s.sessions.ending.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stop := range s.closers {
		stop()
	}
	s.closers = nil
}

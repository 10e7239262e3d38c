package server

import (
	"log/slog"
	"net"
	"net/http"
)

// Validate returns what is wrong with the options.
func (o HTTPOptions) Validate() error {
	if o.OAuth != nil {
		if err := o.OAuth.Validate(); err != nil {
			return err
		}
	}
	_, err := o.crossOrigin()
	return err
}

// crossOrigin lets requests from AllowedOrigins pass the checks of browsers' requests.
func (o *HTTPOptions) crossOrigin() (*http.CrossOriginProtection, error) {
	cross := http.NewCrossOriginProtection()
	for _, origin := range o.AllowedOrigins {
		if err := cross.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return cross, nil
}

// Handler serves what [Server.Serve] does, for a server of the program that calls it, until
// [Server.Close]. Requests to a loopback address must have a Host header that names one. The
// listener, TLS and the times that a connection may take are for that server to see to, and
// so is who reaches it: HTTPOptions.Insecure is not asked. Options that are not valid make a
// handler that refuses everything.
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

// Close takes no more calls, lets those that run go on for Options.DrainTimeout, and ends
// the sessions. Serve and ServeStdio do that by themselves.
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

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/internal/access"
	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// endpoint serves clients of every protocol version over HTTP.
type endpoint struct {
	server   *Server
	opts     HTTPOptions
	local    func(*http.Request) bool // the request came to a loopback address
	named    string                   // an additional loopback name for mounts; may be empty
	cross    *http.CrossOriginProtection
	replays  *admission.Quota // events kept for replay
	sessions *admission.Quota
	forwards *admission.Quota // requests forwarded to other replicas
	verifier *access.Verifier // for OAuth tokens; nil without OAuth
}

func newEndpoint(s *Server, o HTTPOptions, local func(*http.Request) bool) (*endpoint, error) {
	d := &endpoint{server: s, opts: o, local: local, replays: s.newReplays()}
	limits := s.admission.Limits()
	d.sessions = s.admission.Quota("sessions", o.MaxSessions)
	d.forwards = s.admission.Quota("requests that another replica answers", limits.MaxCalls+limits.MaxRequests+limits.MaxStreams)
	if o.OAuth != nil {
		var err error
		if d.opts.OAuth, d.verifier, err = o.OAuth.prepare(s.opts.Logger, o.Now); err != nil {
			return nil, fmt.Errorf("OAuth: %w", err)
		}
	}
	var err error
	d.cross, err = o.crossOrigin()
	return d, err
}

// routes returns the entrances for MCP clients.
func (d *endpoint) routes() []admission.Route {
	return []admission.Route{{Pattern: "/mcp", Kind: kindOf, Enter: d.enter}, {Pattern: "/mcp/{toolset}", Kind: kindOf, Enter: d.enter}}
}

// kindOf returns the kind of an MCP request, to recognize streams.
func kindOf(r *http.Request) admission.Kind {
	if r.Method == http.MethodGet || r.Header.Get(wire.HeaderMethod) == methodListen {
		return admission.KindStream
	}
	return admission.KindCall
}

// serve returns the handler for the admitted HTTP requests of a caller.
func (d *endpoint) serve(c caller) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if kindOf(r) == admission.KindStream {
			ends := d.server.calls.OnRefuse
			if strings.HasPrefix(r.Header.Get(wire.HeaderEvent), eventPrefix) { // it contains a call's response
				ends = d.server.calls.OnStop
			}
			var stop func()
			r, stop = c.lasting(r, ends)
			defer stop()
			r, stop = d.server.allowed(&c, r)
			defer stop()
			defer d.server.observer.stream()()
		}
		in := receive(r)
		modern := wire.IsModern(r.Header.Get(wire.HeaderVersion))
		switch {
		case d.forwardToOwner(w, r, in, c):
			return
		case r.Method == http.MethodPost:
		case modern, d.opts.Stateless:
			noMethod(w, http.MethodPost)
			return
		case r.Method == http.MethodGet:
			d.get(w, r, c)
			return
		case r.Method == http.MethodDelete:
			d.remove(w, r, c)
			return
		default:
			noMethod(w, "GET, POST, DELETE")
			return
		}
		if !acceptMessage(w, r, in) {
			return
		}
		if method := in.message.Method; method != methodCall && method != methodListen { // these have their own counts
			if err := d.server.admission.Requests.Take(c.Principal); err != nil {
				unavailable(w, err.Error())
				return
			}
			defer d.server.admission.Requests.Give(c.Principal)
		}
		switch session := r.Header.Get(wire.HeaderSession) != ""; {
		case modern, wire.IsModern(in.version()), d.opts.Stateless && !session:
			d.alone(w, r, c, in)
		case session:
			d.inSession(w, r, c, in)
		case in.message.Method == methodInitialize:
			d.initialize(w, r, c, in)
		default:
			noSession(w, in.message.ID)
		}
	}
}

// takeSession reserves a session for a principal. If the principal has used up its share, its own longest
// idle session ends; if all sessions are in use, the longest idle session of any principal ends.
func (d *endpoint) takeSession(ctx context.Context, who string) error {
	err := d.sessions.Take(who)
	var full *admission.QuotaError
	if !errors.As(err, &full) {
		return err
	}
	of := ""
	if full.Own {
		of = who
	}
	evicted, idle := d.server.evict(d.sessions, of)
	if evicted == nil {
		return err
	}
	d.server.observer.sessionEvicted(ctx)
	if count := d.server.sessions.countEvicted(); count > 0 {
		d.server.opts.Logger.Warn("ended the longest idle sessions to make room for new ones; see --max-sessions",
			slog.Int("sessions", count), slog.String("principal", evicted.user), slog.String("idle", clip.Duration(idle.Round(time.Second))))
	}
	return d.sessions.Wait(ctx, who, budget.Patience)
}

// refuse answers a request that arrives while the server is stopping. The request has no effect.
func (d *endpoint) refuse(w http.ResponseWriter, r *http.Request) {
	m := d.server.opts.Replica
	if m != nil {
		if owner, _, _ := m.OpenSession(r.Header.Get(wire.HeaderSession)); owner == m.ID() {
			http.Error(w, sessionEnded, http.StatusNotFound)
			return
		}
	}
	unavailable(w, admission.ErrStopping.Error())
}

func (d *endpoint) hostAllowed(r *http.Request) bool {
	host := hostname(r.Host)
	switch {
	case slices.ContainsFunc(d.opts.AllowedHosts, func(h string) bool { return strings.EqualFold(h, host) }):
		return true
	case d.opts.OAuth != nil && strings.EqualFold(host, d.opts.OAuth.host()):
		return true
	case d.local(r):
		ip, err := netip.ParseAddr(host)
		return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
	}
	return len(d.opts.AllowedHosts) == 0
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

func sameHost(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

func unavailable(w http.ResponseWriter, text string) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, text, http.StatusServiceUnavailable)
}

// noSession refuses a request of an older protocol version outside a session (MCP specification 2025-11-25,
// transports, session management).
func noSession(w http.ResponseWriter, id json.RawMessage) {
	writeAnswer(w, http.StatusBadRequest, write(id, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "no session: start with initialize, and send its " + wire.HeaderSession + " header, or send the " + wire.HeaderVersion + " header of " + wire.ModernVersion + "; started with --stateless, the server needs no session"}).text)
}

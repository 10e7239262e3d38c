package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/server/internal/access"
)

// Headers of the streamable HTTP transport.
const (
	headerSession  = "Mcp-Session-Id"
	headerVersion  = "Mcp-Protocol-Version"
	headerMethod   = "Mcp-Method"
	metaVersionKey = "io.modelcontextprotocol/protocolVersion"
)

// endpoint decides who may ask and which handler of the SDK answers: a handler serves one
// protocol version fully and refuses the other.
type endpoint struct {
	server   *Server
	opts     HTTPOptions
	local    func(*http.Request) bool // it came to an address of loopback
	named    string                   // one more name of loopback, for mounts; "" for none
	cross    *http.CrossOriginProtection
	stateful http.Handler // 2025-11-25 and older
	modern   http.Handler // 2026-07-28, and older ones without a session: each request on its own
	known    *httpSessions
	sessions *admission.Quota
	forwards *admission.Quota // requests that other replicas answer
	verifier *access.Verifier // of OAuth tokens; nil without
}

func newEndpoint(s *Server, o HTTPOptions, local func(*http.Request) bool) (*endpoint, error) {
	d := &endpoint{server: s, opts: o, local: local, cross: http.NewCrossOriginProtection()}
	limits := s.admission.Limits()
	d.sessions = s.admission.Quota("sessions", o.MaxSessions)
	d.forwards = s.admission.Quota("requests that another replica answers", limits.MaxCalls+limits.MaxRequests+limits.MaxStreams)
	if o.OAuth != nil {
		var err error
		if d.opts.OAuth, d.verifier, err = o.OAuth.prepare(s.opts.Logger, o.Now); err != nil {
			return nil, fmt.Errorf("OAuth: %w", err)
		}
	}
	for _, origin := range o.AllowedOrigins {
		if err := d.cross.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	get := func(*http.Request) *sdk.Server { return s.sdk }
	logger := slog.New(quiet{s.opts.Logger.Handler()})
	d.stateful = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Logger: logger, SessionTimeout: o.SessionTimeout, MaxRequestBodyBytes: limits.MaxBody, DisableLocalhostProtection: true, // ours knows allowed hosts
	})
	d.modern = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Logger: logger, Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: limits.MaxBody, DisableLocalhostProtection: true,
	})
	d.known = &httpSessions{sdk: d.stateful, fresh: o.SessionTimeout / 4, room: s.newKept(), log: s.opts.Logger, all: map[string]*httpSession{}}
	s.sdk.AddReceivingMiddleware(d.known.see)
	return d, nil
}

// route is the entrance of MCP clients.
func (d *endpoint) route() admission.Route {
	return admission.Route{Pattern: "/mcp", Kind: kindOf, Enter: d.enter}
}

// kindOf says which requests of MCP last.
func kindOf(r *http.Request) admission.Kind {
	if r.Method == http.MethodGet || r.Header.Get(headerMethod) == methodListen {
		return admission.KindStream
	}
	return admission.KindCall
}

// serve answers a request that was admitted: it chooses the protocol version.
func (d *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	r.Header.Del(headerShare)
	r.Header.Del(headerTouch)
	who := userOf(auth.TokenInfoFromContext(r.Context()))
	if kindOf(r) == admission.KindStream {
		ends := d.server.calls.OnRefuse
		if strings.HasPrefix(r.Header.Get(headerEvent), eventPrefix) { // it has the answer of a call
			ends = d.server.calls.OnStop
		}
		var stop func()
		r, stop = lasting(r, ends)
		defer stop()
		defer d.server.observer.stream()()
	}
	defer d.known.use(r)()
	version := r.Header.Get(headerVersion)
	if r.Method != http.MethodPost {
		if d.elsewhere(w, r, nil, who) {
			return
		}
		switch {
		case isModern(version), d.opts.Stateless:
			d.modern.ServeHTTP(w, r) // which has POST only
		case r.Method == http.MethodGet && d.resume(w, r):
		case r.Method == http.MethodGet:
			defer d.known.keep(r)()
			d.stateful.ServeHTTP(w, r)
		default:
			d.stateful.ServeHTTP(w, r)
		}
		return
	}
	body, done := d.received(r)
	defer done()
	if d.elsewhere(w, r, body, who) {
		return
	}
	if d.serveCall(w, r, body) {
		return
	}
	if d.known.take(r, body) {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	body = keepRaw(body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	first := peek(body)
	if first.method != methodCall && r.Header.Get(headerMethod) != methodListen { // calls and streams are counted by themselves
		if err := d.server.admission.Requests.Take(who); err != nil {
			unavailable(w, err.Error())
			return
		}
		defer d.server.admission.Requests.Give(who)
	}
	switch {
	case isModern(version):
		if far := farNumber(body); far != "" {
			refuseFar(w, first.id, far)
			return
		}
		d.modern.ServeHTTP(w, r)
	case r.Header.Get(headerSession) != "":
		d.stateful.ServeHTTP(w, r)
	case isModern(first.version):
		d.modern.ServeHTTP(w, r) // which asks for the header that is missing
	case d.opts.Stateless:
		d.modern.ServeHTTP(w, r)
	case first.method == "initialize":
		if err := d.takeSession(r.Context(), who); err != nil {
			unavailable(w, err.Error())
			return
		}
		d.stateful.ServeHTTP(w, r)
		id := w.Header().Get(headerSession)
		d.server.afterSession(id, func(ss *sdk.ServerSession) { d.known.begin(ss, who) }, func() {
			d.sessions.Give(who)
			d.known.drop(id)
			d.server.turns.forget(mcpSession(id))
		})
	default:
		noSession(w, first.id)
	}
}

// takeSession takes one more session for a principal. When it has all that it may have its own session that
// was idle longest makes room, and when there are no more at all, that of anyone.
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
	if !d.known.evict(of) {
		return err
	}
	d.server.observer.sessionEvicted(ctx)
	return d.sessions.Wait(ctx, who, budget.Patience)
}

// refuse answers a request that comes once the server stops, and of which nothing is done.
func (d *endpoint) refuse(w http.ResponseWriter, r *http.Request) {
	m := d.server.opts.Replica
	if m != nil {
		if owner, _, _ := m.OpenSession(r.Header.Get(headerSession)); owner == m.ID() {
			http.Error(w, sessionEnded, http.StatusNotFound)
			return
		}
	}
	unavailable(w, admission.ErrStopping.Error())
}

// message is what the choice of a protocol version depends on. It is empty for a batch and for
// what is not valid JSON; the handlers have words for those.
type message struct {
	id              json.RawMessage
	method, version string
}

func peek(body []byte) message {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	_ = json.Unmarshal(body, &m) // fields of another type stay empty
	var version string
	_ = json.Unmarshal(m.Params.Meta[metaVersionKey], &version)
	return message{m.ID, m.Method, version}
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

// noSession refuses a request of the older protocol version outside a session (MCP specification
// 2025-11-25, transports, session management).
func noSession(w http.ResponseWriter, id json.RawMessage) {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{
		"code":    jsonrpc.CodeInvalidRequest,
		"message": "no session: begin with initialize and send its " + headerSession + " header, or send the " + headerVersion + " header of " + modernVersion + "; started with --stateless, the server needs no session",
	}})
}

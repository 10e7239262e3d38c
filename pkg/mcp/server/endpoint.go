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
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

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
	inside   http.Handler // behind authentication
	stateful http.Handler // 2025-11-25 and older
	modern   http.Handler // 2026-07-28: each request on its own
	known    *httpSessions
	bodies   *admission.Quota // requests that are being read
	requests *admission.Quota // requests that are read, but for calls
	streams  *admission.Quota
	sessions *admission.Quota
	forwards *admission.Quota // requests that other replicas answer
	reading  *admission.Quota // bytes of large requests that are being read, in pieces of readPiece
	verifier *access.Verifier // of OAuth tokens; nil without
	rates    *admission.Rates
}

func newEndpoint(s *Server, o HTTPOptions, local func(*http.Request) bool) (*endpoint, error) {
	d := &endpoint{server: s, opts: o, local: local, cross: http.NewCrossOriginProtection(), rates: admission.NewRates(o.Rate, o.RateCounters, o.Now)}
	part := s.opts.PrincipalShare
	d.bodies, d.requests = admission.NewQuota("requests", o.MaxRequests, part), admission.NewQuota("requests", o.MaxRequests, part)
	d.streams, d.sessions = admission.NewQuota("streams", o.MaxStreams, part), admission.NewQuota("sessions", o.MaxSessions, part)
	d.forwards = admission.NewQuota("requests that another replica answers", s.opts.MaxCalls+o.MaxRequests+o.MaxStreams, part)
	d.reading = d.newReading()
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
		Logger: logger, SessionTimeout: o.SessionTimeout, MaxRequestBodyBytes: o.MaxBody, DisableLocalhostProtection: true, // ours knows allowed hosts
	})
	d.modern = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Logger: logger, Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: o.MaxBody, DisableLocalhostProtection: true,
	})
	d.known = &httpSessions{sdk: d.stateful, fresh: o.SessionTimeout / 4, room: s.newKept(), log: s.opts.Logger, all: map[string]*httpSession{}}
	s.sdk.AddReceivingMiddleware(d.known.see)
	d.inside = d.guard(http.HandlerFunc(d.admit))
	return d, nil
}

// ServeHTTP checks where a request comes from (MCP specification, transports,
// security warning): a web page must not reach the server through its visitor's
// browser, be it by a name that leads here.
func (d *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.hostAllowed(r) {
		http.Error(w, "the Host header is not one of this server's names", http.StatusForbidden)
		return
	}
	origin := r.Header.Get("Origin")
	if slices.Contains(d.opts.AllowedOrigins, origin) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", headerSession+", WWW-Authenticate, Retry-After")
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
			h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			w.WriteHeader(http.StatusNoContent)
			return
		}
	} else if origin != "" && !sameHost(origin, r.Host) || d.cross.Check(r) != nil {
		http.Error(w, "requests from this origin are not allowed", http.StatusForbidden)
		return
	}
	d.inside.ServeHTTP(w, r)
}

// admit bounds what is served at once, for each principal too, reads the body and chooses the protocol version.
func (d *endpoint) admit(w http.ResponseWriter, r *http.Request) {
	if d.server.calls.Stopping() {
		d.refuse(w, r)
		return
	}
	if !acceptable(r) {
		unacceptable(w, r)
		return
	}
	r.Header.Del(headerShare)
	r.Header.Del(headerTouch)
	who := userOf(auth.TokenInfoFromContext(r.Context()))
	if r.Method == http.MethodGet || r.Header.Get(headerMethod) == methodListen {
		ends := d.server.calls.OnRefuse
		if strings.HasPrefix(r.Header.Get(headerEvent), eventPrefix) { // it has the answer of a call
			ends = d.server.calls.OnStop
		}
		var stop func()
		r, stop = lasting(r, ends)
		defer stop()
		if err := d.streams.Take(who); err != nil {
			unavailable(w, err.Error())
			return
		}
		defer d.streams.Give(who)
		defer d.server.observer.stream()()
	} else {
		if !d.server.calls.Enter() {
			d.refuse(w, r)
			return
		}
		defer d.server.calls.Leave()
	}
	defer d.known.use(r)()
	out := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w)}
	version := r.Header.Get(headerVersion)
	if r.Method != http.MethodPost {
		if d.elsewhere(out, r, nil, who) {
			return
		}
		switch {
		case isModern(version):
			d.modern.ServeHTTP(out, r)
		case r.Method == http.MethodGet && d.resume(out, r):
		case r.Method == http.MethodGet:
			defer d.known.keep(r)()
			d.stateful.ServeHTTP(out, r)
		default:
			d.stateful.ServeHTTP(out, r)
		}
		return
	}
	body, done, ok := d.receive(w, r, who)
	if !ok {
		return
	}
	defer done()
	if d.elsewhere(out, r, body, who) {
		return
	}
	if d.serveCall(out, r, body) {
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
		if err := d.requests.Take(who); err != nil {
			unavailable(w, err.Error())
			return
		}
		defer d.requests.Give(who)
	}
	switch {
	case isModern(version):
		if far := farNumber(body); far != "" {
			refuseFar(out, first.id, far)
			return
		}
		d.modern.ServeHTTP(out, r)
	case r.Header.Get(headerSession) != "":
		d.stateful.ServeHTTP(out, r)
	case isModern(first.version):
		d.modern.ServeHTTP(out, r) // which asks for the header that is missing
	case first.method == "initialize":
		if err := d.takeSession(r.Context(), who); err != nil {
			unavailable(w, err.Error())
			return
		}
		d.stateful.ServeHTTP(out, r)
		id := out.Header().Get(headerSession)
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
	return d.sessions.Wait(ctx, who, patience)
}

// refuse answers a request that comes once the server stops, and of which nothing is done.
func (d *endpoint) refuse(w http.ResponseWriter, r *http.Request) {
	m := d.server.opts.Replica
	if r.Context().Value(forwardedKey{}) != nil {
		http.Error(w, admission.ErrStopping.Error(), http.StatusMisdirectedRequest)
		return
	}
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
		"message": "no session: begin with initialize and send its " + headerSession + " header, or send the " + headerVersion + " header of " + modernVersion,
	}})
}

// patientWriter gives a client a bounded time to take each piece of an answer. A
// stream may be silent for as long as it likes.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *patientWriter) Write(p []byte) (int, error) {
	defer w.within()()
	return w.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController calls.
func (w *patientWriter) FlushError() error {
	defer w.within()()
	return w.control.Flush()
}

// Flush is for writers that ask for an http.Flusher.
func (w *patientWriter) Flush() { _ = w.FlushError() }

func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *patientWriter) within() func() {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every connection has deadlines
	return func() { _ = w.control.SetWriteDeadline(time.Time{}) }
}

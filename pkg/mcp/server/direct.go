package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/mcp"
)

// direct is the short way of tools/call over HTTP. A call by a client that can get
// nothing but the answer needs no stream of messages: it is answered here, as one JSON
// document, without the SDK's session, which costs several times what the call does.
// What is unusual in any way takes the SDK's way, which also has the words for what is
// wrong with a request.
type direct struct {
	server *Server
	handle sdk.MethodHandler
	idle   time.Duration // after which a session must be seen by the SDK again
	info   map[string]any
	most   int

	mu       sync.Mutex
	sessions map[string]*plainSession // by id
}

// plainSession is a session of a client of 2025-11-25 or older, as the SDK knows it.
type plainSession struct {
	session *sdk.ServerSession
	user    string
	version string // the Mcp-Protocol-Version header that the SDK took
	talks   bool   // it may get more than answers
	seen    time.Time
	running map[string]context.CancelFunc // direct calls, by the id of the request
}

const (
	methodCall      = "tools/call"
	methodSetLevel  = "logging/setLevel"
	methodCancelled = "notifications/cancelled"
	headerName      = "Mcp-Name"
	metaPrefix      = "io.modelcontextprotocol/"
)

func newDirect(s *Server, o HTTPOptions) *direct {
	d := &direct{server: s, handle: s.receive(nil), idle: o.SessionTimeout / 4, most: o.MaxSessions, sessions: map[string]*plainSession{},
		info: map[string]any{metaPrefix + "serverInfo": s.impl()}}
	s.sdk.AddReceivingMiddleware(d.learn)
	return d
}

// learn notes the sessions that the SDK serves. A direct call does not tell it that a
// session is in use, so one is taken only while it was seen here not long ago.
func (d *direct) learn(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		ss, ok := req.GetSession().(*sdk.ServerSession)
		extra := req.GetExtra()
		if !ok || ss.ID() == "" || extra == nil {
			return next(ctx, method, req)
		}
		if method == methodCall || method == methodSetLevel {
			d.note(ss, extra, method == methodSetLevel)
		}
		return next(ctx, method, req)
	}
}

func (d *direct) note(ss *sdk.ServerSession, extra *sdk.RequestExtra, talks bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.sessions[ss.ID()]
	if p == nil {
		if len(d.sessions) >= d.most {
			for id, old := range d.sessions {
				if time.Since(old.seen) > d.idle && len(old.running) == 0 {
					delete(d.sessions, id)
				}
			}
		}
		init := ss.InitializeParams()
		p = &plainSession{session: ss, running: map[string]context.CancelFunc{}, talks: init == nil || capabilities(init.Capabilities) != mcp.Capabilities{}}
		d.sessions[ss.ID()] = p
	}
	p.talks = p.talks || talks
	p.seen = time.Now()
	p.version = extra.Header.Get(headerVersion)
	p.user = userOf(extra.TokenInfo)
}

// forget drops a session that its client ends, and cancels its calls.
func (d *direct) forget(r *http.Request) {
	id := r.Header.Get(headerSession)
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.sessions[id]; p != nil && p.user == userOf(auth.TokenInfoFromContext(r.Context())) {
		for _, cancel := range p.running {
			cancel()
		}
		delete(d.sessions, id)
	}
}

// cancelled takes a notification that a call is cancelled; the SDK gets it too.
func (d *direct) cancelled(r *http.Request, body []byte) {
	if !bytes.Contains(body, []byte(methodCancelled)) {
		return
	}
	var m struct {
		Method string `json:"method"`
		Params struct {
			ID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &m) != nil || m.Method != methodCancelled {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.sessions[r.Header.Get(headerSession)]; p != nil && p.user == userOf(auth.TokenInfoFromContext(r.Context())) {
		if cancel := p.running[string(m.Params.ID)]; cancel != nil {
			cancel()
		}
	}
}

func userOf(t *auth.TokenInfo) string {
	if t == nil {
		return ""
	}
	return t.UserID
}

// serve answers a request; false when it is not one for the short way.
func (d *direct) serve(w http.ResponseWriter, r *http.Request, body []byte) bool {
	if !plainHeaders(r.Header) {
		return false
	}
	c, ok := readCall(body)
	if !ok {
		return false
	}
	ctx, done := r.Context(), func() {}
	if id := r.Header.Get(headerSession); r.Header.Get(headerVersion) == modernVersion {
		if id != "" || !c.modern(r.Header) || d.server.set.Load().checks[c.params.Name] {
			return false
		}
		c.session = new(sdk.ServerSession)
	} else {
		// The end of the connection is not the end of a call (MCP specification
		// 2025-11-25, basic/transports, sending messages).
		ctx, done, ok = d.begin(context.WithoutCancel(ctx), c, id, r)
		switch {
		case c.twice:
			writeAnswer(w, http.StatusBadRequest, c.failure(jsonrpc.CodeInvalidRequest, "duplicate in-flight request ID "+string(c.id)))
			return true
		case !ok:
			return false
		}
	}
	defer done()
	req := &sdk.CallToolRequest{Session: c.session, Params: &c.params, Extra: &sdk.RequestExtra{TokenInfo: auth.TokenInfoFromContext(ctx), Header: r.Header}}
	res, err := d.handle(ctx, methodCall, req)
	status := http.StatusOK
	if err != nil {
		var failed *jsonrpc.Error
		if !errors.As(err, &failed) {
			failed = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
		if c.params.Meta[metaVersionKey] != nil {
			status = statusOf(failed.Code)
		}
		writeAnswer(w, status, c.answer("error", failed))
		return true
	}
	if c.params.Meta[metaVersionKey] != nil {
		meta := res.GetMeta()
		if meta == nil {
			meta = d.info
		} else {
			for k, v := range d.info {
				meta[k] = v
			}
		}
		res.SetMeta(meta)
	}
	writeAnswer(w, status, c.answer("result", res))
	return true
}

// statusOf is the status of a response with an error (MCP specification 2026-07-28,
// basic/transports).
func statusOf(code int64) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, sdk.CodeUnsupportedProtocolVersion, sdk.CodeMissingRequiredClientCapabilities:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// begin enters a call of a session, when the session is one whose calls may be direct.
func (d *direct) begin(ctx context.Context, c *plainCall, id string, r *http.Request) (context.Context, func(), bool) {
	if id == "" || c.params.Meta[metaVersionKey] != nil {
		return nil, nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.sessions[id]
	if p == nil || p.talks || time.Since(p.seen) > d.idle || p.version == "" || p.version != r.Header.Get(headerVersion) || p.user != userOf(auth.TokenInfoFromContext(ctx)) {
		return nil, nil, false
	}
	key := string(c.id)
	if c.twice = p.running[key] != nil; c.twice {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	p.running[key] = cancel
	c.session = p.session
	return ctx, func() {
		cancel()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(p.running, key)
	}, true
}

// plainHeaders reports whether a request is a usual one of either protocol version.
func plainHeaders(h http.Header) bool {
	if kind := h.Get("Content-Type"); kind != "application/json" {
		if base, _, err := mime.ParseMediaType(kind); err != nil || base != "application/json" {
			return false
		}
	}
	accept := h["Accept"]
	return len(accept) == 1 && strings.Contains(accept[0], "application/json") && strings.Contains(accept[0], "text/event-stream") && h.Get("Last-Event-ID") == ""
}

// plainCall is a request of tools/call without anything unusual.
type plainCall struct {
	id      json.RawMessage
	params  sdk.CallToolParamsRaw
	session *sdk.ServerSession
	twice   bool // the session has a call with this id
}

// readCall reads a request; false when it is not such a call.
func readCall(body []byte) (*plainCall, bool) {
	if !bytes.Contains(body, []byte(`"`+methodCall+`"`)) {
		return nil, false
	}
	// Maps, because a struct would also take names of another case.
	var m, params map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || len(m) != 4 || string(m["jsonrpc"]) != `"2.0"` || string(m["method"]) != `"`+methodCall+`"` || !plainID(m["id"]) {
		return nil, false
	}
	if json.Unmarshal(m["params"], &params) != nil {
		return nil, false
	}
	c := &plainCall{id: m["id"]}
	for k, v := range params {
		switch k {
		case "name":
			if json.Unmarshal(v, &c.params.Name) != nil {
				return nil, false
			}
		case "arguments":
			c.params.Arguments = v
		case "_meta":
			if json.Unmarshal(v, &c.params.Meta) != nil || c.params.Meta["progressToken"] != nil {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return c, c.params.Name != ""
}

// plainID reports whether an id is a text or a whole number.
func plainID(id json.RawMessage) bool {
	if len(id) == 0 {
		return false
	}
	return id[0] == '"' || len(id) < 16 && strings.Trim(string(id), "0123456789") == ""
}

// modern reports whether the call is whole by the rules of 2026-07-28, and its client
// gets nothing but the answer.
func (c *plainCall) modern(h http.Header) bool {
	if h.Get(headerMethod) != methodCall || h.Get(headerName) != c.params.Name || c.params.Meta[metaVersionKey] != modernVersion || c.params.Meta[metaPrefix+"logLevel"] != nil {
		return false
	}
	can, ok := c.params.Meta[metaPrefix+"clientCapabilities"].(map[string]any)
	if !ok || can["elicitation"] != nil || can["sampling"] != nil || can["roots"] != nil {
		return false
	}
	info, ok := c.params.Meta[metaPrefix+"clientInfo"].(map[string]any)
	if !ok {
		return false
	}
	name, named := info["name"].(string)
	version, versioned := info["version"].(string)
	return named && versioned && name != "" && version != ""
}

func (c *plainCall) failure(code int64, text string) []byte {
	return c.answer("error", &jsonrpc.Error{Code: code, Message: text})
}

// answer is the response with a member, result or error.
func (c *plainCall) answer(member string, value any) []byte {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	b.Write(c.id)
	b.WriteString(`,"` + member + `":`)
	var err error
	if res, ok := value.(*result); ok {
		err = writeResult(&b, res)
	} else {
		err = jsontext.Write(&b, value)
	}
	if err != nil {
		return c.failure(jsonrpc.CodeInternalError, "internal error: the answer cannot be written")
	}
	b.WriteByte('}')
	return b.Bytes()
}

func writeAnswer(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, no-transform")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone
}

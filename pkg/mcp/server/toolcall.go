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

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/jsontext"
)

const (
	methodCall = "tools/call"
	methodPing = "ping"
	headerName = "Mcp-Name"
	metaPrefix = "io.modelcontextprotocol/"
)

// toolCall is a request of tools/call over HTTP.
type toolCall struct {
	id     json.RawMessage
	params sdk.CallToolParamsRaw
	// uncounted says that it was refused because the store cannot be reached.
	uncounted bool
	room      *bytes.Buffer // of its answer
}

// serveCall answers tools/call. Every such request over HTTP is answered here, without the
// SDK's streams and sessions, which cost several times what a call does. False says that the
// request is not as the protocol has it, is of no session, or has arguments in headers: the
// SDK has the words for what is wrong with it.
func (d *endpoint) serveCall(w http.ResponseWriter, r *http.Request, body []byte) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" || r.Header.Get(headerEvent) != "" {
		return false
	}
	c, ok := readCall(body)
	if !ok {
		return false
	}
	defer c.done()
	answer := &response{w: w, control: http.NewResponseController(w), chunked: r.ProtoAtLeast(1, 1)}
	if r.Header.Get(headerSession) != "" {
		return d.serveInSession(answer, r, c)
	}
	if d.opts.Stateless && !c.isModern() && !isModern(r.Header.Get(headerVersion)) {
		// The end of the connection is not the end of the call, as in a session.
		answer.end(d.call(context.WithoutCancel(r.Context()), answer, r, c, new(sdk.ServerSession)))
		return true
	}
	if !c.modern(r.Header) || d.server.set.Load().checks[c.params.Name] {
		return false
	}
	answer.end(d.call(r.Context(), answer, r, c, new(sdk.ServerSession)))
	return true
}

// serveInSession answers a call of a client of 2025-11-25 or older.
func (d *endpoint) serveInSession(answer *response, r *http.Request, c *toolCall) bool {
	if c.params.Meta[metaVersionKey] != nil {
		return false
	}
	s := d.known.find(r)
	if s == nil {
		return false
	}
	conn := connectionOf(r)
	conn.next(s)
	// The end of the connection is not the end of a call (MCP specification 2025-11-25,
	// basic/transports, sending messages).
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	if !s.begin(c.id, cancel) {
		answer.end(http.StatusBadRequest, c.failure(jsonrpc.CodeInvalidRequest, "duplicate in-flight request ID "+string(c.id)))
		return true
	}
	stop := d.known.keep(r)
	ctx, settle := answer.inSession(ctx, s, r.Header.Get(headerVersion), d.server.opts.StreamAfter)
	status, message := d.call(ctx, answer, r, c, s.sdk)
	settle()
	stop()
	s.end(c.id) // before its client knows, which may use the id again
	answer.end(status, message)
	conn.ended(answer)
	return true
}

// call carries out a call and returns the message that answers it, and its status. What
// comes before the answer goes to the client at once.
func (d *endpoint) call(ctx context.Context, to channel, r *http.Request, c *toolCall, session *sdk.ServerSession) (status int, message []byte) {
	req := &sdk.CallToolRequest{Session: session, Params: &c.params, Extra: &sdk.RequestExtra{TokenInfo: auth.TokenInfoFromContext(ctx), Header: r.Header}}
	message, failed := d.server.answer(ctx, to, req, c)
	status = http.StatusOK
	switch {
	case failed != nil && c.isModern():
		status = statusOf(failed.Code)
	case c.uncounted:
		status = http.StatusServiceUnavailable
	}
	return status, message
}

// answer carries out a call and returns the message that answers it, and the error in it.
func (s *Server) answer(ctx context.Context, to channel, req *sdk.CallToolRequest, c *toolCall) (message []byte, failed *jsonrpc.Error) {
	res, err := s.handle(ctx, methodCall, req, to, nil)
	if err == nil {
		if c.isModern() {
			res.SetMeta(s.signed(res.GetMeta()))
		}
		if r, ok := res.(*result); ok {
			c.uncounted = r.uncounted
		}
		return c.answer("result", res), nil
	}
	if !errors.As(err, &failed) {
		failed = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return c.answer("error", failed), failed
}

// isModern reports whether the call says that it is of 2026-07-28 or later.
func (c *toolCall) isModern() bool { return c.params.Meta[metaVersionKey] != nil }

// signed adds to the _meta of a result which server it is of (MCP specification 2026-07-28).
func (s *Server) signed(meta map[string]any) map[string]any {
	if meta == nil {
		meta = map[string]any{}
	}
	meta[metaPrefix+"serverInfo"] = s.impl()
	return meta
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

// readCall reads a request; false when it is not a call, or not as the protocol has it.
func readCall(body []byte) (*toolCall, bool) {
	if !bytes.Contains(body, []byte(`"`+methodCall+`"`)) || !jsontext.Valid(body) {
		return nil, false
	}
	// Member by member, because a struct would also take names of another case.
	var m, params struct{ version, id, method, params, name, args, meta, state, input []byte }
	if !jsontext.Members(body, func(name string) *[]byte {
		switch name {
		case "jsonrpc":
			return &m.version
		case "id":
			return &m.id
		case "method":
			return &m.method
		case "params":
			return &m.params
		}
		return nil
	}) || string(m.version) != `"2.0"` || string(m.method) != `"`+methodCall+`"` || !plainID(m.id) {
		return nil, false
	}
	if !jsontext.Members(m.params, func(name string) *[]byte {
		switch name {
		case "name":
			return &params.name
		case "arguments":
			return &params.args
		case "_meta":
			return &params.meta
		case "requestState":
			return &params.state
		case "inputResponses":
			return &params.input
		}
		return nil
	}) {
		return nil, false
	}
	c := &toolCall{id: m.id}
	c.params.Arguments = params.args
	read := func(raw []byte, into any) bool { return raw == nil || json.Unmarshal(raw, into) == nil }
	if !read(params.name, &c.params.Name) || !read(params.meta, &c.params.Meta) || !read(params.state, &c.params.RequestState) {
		return nil, false
	}
	delete(c.params.Meta, metaRaw)
	if params.input != nil {
		if c.params.Meta == nil {
			c.params.Meta = map[string]any{}
		}
		c.params.Meta[metaRaw] = string(params.input)
	}
	return c, c.params.Name != "" && c.plainProgress()
}

// plainProgress reports whether the token of the progress is a text or a number, if there is one.
func (c *toolCall) plainProgress() bool {
	switch c.params.Meta["progressToken"].(type) {
	case nil, string, float64:
		return true
	}
	return false
}

// plainID reports whether an id is a text or a whole number.
func plainID(id json.RawMessage) bool {
	if len(id) == 0 {
		return false
	}
	return id[0] == '"' || len(id) < 16 && strings.Trim(string(id), "0123456789") == ""
}

// modern reports whether the call is as 2026-07-28 has it.
func (c *toolCall) modern(h http.Header) bool {
	return h.Get(headerVersion) == modernVersion && h.Get(headerMethod) == methodCall && h.Get(headerName) == c.params.Name && c.wellFormed()
}

// wellFormed reports whether the _meta of a call is as 2026-07-28 has it.
func (c *toolCall) wellFormed() bool {
	if c.params.Meta[metaVersionKey] != modernVersion {
		return false
	}
	if _, ok := declared(c.params.Meta); !ok {
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

func (c *toolCall) failure(code int64, text string) []byte {
	return c.answer("error", &jsonrpc.Error{Code: code, Message: text})
}

// answers is the room for messages that answer calls.
var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// largeAnswer is what a call does not leave to the next.
const largeAnswer = 512 << 10

// done says that the answer was written, and is used no longer.
func (c *toolCall) done() {
	if b := c.room; b != nil && b.Cap() <= largeAnswer {
		b.Reset()
		answers.Put(b)
	}
	c.room = nil
}

// answer is the message that answers the call, with a result or an error. It is valid until
// done is called.
func (c *toolCall) answer(member string, value any) []byte {
	c.done()
	b, _ := answers.Get().(*bytes.Buffer)
	c.room = b
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	b.Write(c.id)
	b.WriteString(`,"` + member + `":`)
	var err error
	if res, ok := value.(*result); ok {
		err = writeResult(b, res)
	} else {
		err = jsontext.Write(b, value)
	}
	if err != nil {
		return c.failure(jsonrpc.CodeInternalError, "internal error: the answer cannot be written")
	}
	b.WriteByte('}')
	return b.Bytes()
}

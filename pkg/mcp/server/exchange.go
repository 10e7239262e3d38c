package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// acceptMessage reports whether the headers and body of a POST are those of a message. If not, it has
// responded with an error.
func acceptMessage(w http.ResponseWriter, r *http.Request, in *received) bool {
	version := r.Header.Get(wire.HeaderVersion)
	switch kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case err != nil || kind != "application/json":
		http.Error(w, "Content-Type must be 'application/json'", http.StatusUnsupportedMediaType)
	case version != "" && !wire.IsModern(version) && !slices.Contains(wire.Versions, version):
		http.Error(w, "Bad Request: Unsupported protocol version (supported versions: "+strings.Join(wire.Versions, ",")+")", http.StatusBadRequest)
	case r.Header.Get(wire.HeaderEvent) != "":
		http.Error(w, "can't send Last-Event-ID for POST request", http.StatusBadRequest)
	case in.err != nil:
		http.Error(w, "malformed payload: "+in.err.Error(), http.StatusBadRequest)
	case in.batch != nil && (wire.IsModern(version) || r.Header.Get(wire.HeaderSession) == ""):
		http.Error(w, "JSON-RPC batches are for sessions of versions before "+batchless, http.StatusBadRequest)
	default:
		return true
	}
	return false
}

// request creates the request for a message, and its response.
func (in *received) request(w http.ResponseWriter, r *http.Request, c caller) (*request, *response) {
	out := &response{w: w, control: http.NewResponseController(w), chunked: r.ProtoAtLeast(1, 1)}
	return &request{Message: in.message, toolset: c.toolset, principal: c.Principal, header: r.Header, body: in.body, to: out}, out
}

// unsaidVersion is the version of clients without the version header, which later versions require.
const unsaidVersion = "2025-03-26"

// alone answers a request without a session: a request of 2026-07-28, which ends with its connection, or a
// request of an older client, which does not; see HTTPOptions.Stateless.
func (d *endpoint) alone(w http.ResponseWriter, r *http.Request, c caller, in *received) {
	q, out := in.request(w, r, c)
	if q.Kind() != wire.Call {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	version, ctx := r.Header.Get(wire.HeaderVersion), r.Context()
	var failed *jsonrpc.Error
	modern := wire.IsModern(version) || wire.IsModern(in.version())
	if !modern {
		q.version, ctx = cmp.Or(version, unsaidVersion), context.WithoutCancel(ctx)
	} else if failed = d.headersAgree(q, version, in.version()); failed == nil {
		failed = d.server.identify(q)
	}
	var res answer
	if failed == nil {
		res, failed = d.server.dispatch(ctx, q)
	}
	out.answer(q.ID, res, failed, modern)
}

// headersAgree compares the headers with the request (MCP 2026-07-28, basic/transports, standard headers).
func (d *endpoint) headersAgree(q *request, version, said string) *jsonrpc.Error {
	h := q.header
	mismatch := func(text string) *jsonrpc.Error {
		return &jsonrpc.Error{Code: sdk.CodeHeaderMismatch, Message: text}
	}
	switch name := h.Get(wire.HeaderName); {
	case version == "":
		return mismatch(wire.HeaderVersion + " header is required for requests carrying " + strconv.Quote(wire.MetaVersion))
	case said == "":
		return invalidParams(fmt.Sprintf("missing or invalid _meta field %q", wire.MetaVersion))
	case version != said:
		return mismatch(fmt.Sprintf("%s header %q does not match request %s %q", wire.HeaderVersion, version, wire.MetaVersion, said))
	case h.Get(wire.HeaderMethod) != q.Method:
		return mismatch(fmt.Sprintf("%s header value %q does not match body value %q", wire.HeaderMethod, h.Get(wire.HeaderMethod), q.Method))
	case q.Method == methodCall || q.Method == "prompts/get":
		if body, _ := q.Params.Text("name"); name != body || name == "" {
			return mismatch(fmt.Sprintf("Mcp-Name header value %q does not match body value %q", name, body))
		}
	case q.Method == "resources/read":
		if body, _ := q.Params.Text("uri"); name != body || name == "" {
			return mismatch(fmt.Sprintf("Mcp-Name header value %q does not match body value %q", name, body))
		}
	}
	if q.Method == methodCall {
		name, _ := q.Params.Text("name")
		o := d.server.offers(q.toolset)
		if text := o.paramHeaders(name, q.Params.Get("arguments"), h); text != "" && !o.offersBuiltin(q, name) {
			return mismatch(text)
		}
	}
	return nil
}

// initialize creates a session and answers the initialize request.
func (d *endpoint) initialize(w http.ResponseWriter, r *http.Request, c caller, in *received) {
	q, out := in.request(w, r, c)
	if err := d.takeSession(r.Context(), q.principal); err != nil {
		unavailable(w, err.Error())
		return
	}
	s := d.server
	n := s.open(s.newSessionID(), q.principal, q.toolset, d.opts.SessionTimeout, d.sessions)
	if n == nil {
		d.sessions.Give(q.principal)
		unavailable(w, admission.ErrStopping.Error())
		return
	}
	n.replays = &replayStore{room: d.replays, who: q.principal}
	q.session = n
	res, failed := s.dispatch(context.WithoutCancel(r.Context()), q)
	if failed != nil {
		n.end()
	} else {
		w.Header().Set(wire.HeaderSession, n.id)
	}
	out.answer(q.ID, res, failed, false)
}

const noSuchSession = "session not found"

// member returns the session of a request, which is in use until done is called. It responds with an error
// if there is no such session.
func (d *endpoint) member(w http.ResponseWriter, r *http.Request, c caller) (n *session, done func()) {
	id := r.Header.Get(wire.HeaderSession)
	n, done = d.server.find(id)
	switch {
	case n == nil:
		http.Error(w, noSuchSession, http.StatusNotFound)
	case n.toolset != c.toolset:
		done()
		http.Error(w, noSuchSession, http.StatusNotFound)
		return nil, nil
	case n.user != c.Principal:
		done()
		http.Error(w, "session user mismatch", http.StatusForbidden)
		return nil, nil
	}
	return n, done
}

// inSession answers a message of a client of 2025-11-25 or older.
func (d *endpoint) inSession(w http.ResponseWriter, r *http.Request, c caller, in *received) {
	q, out := in.request(w, r, c)
	n, done := d.member(w, r, c)
	if n == nil {
		return
	}
	defer done()
	if in.batch != nil {
		d.batch(out, r, n, q, in.batch)
		return
	}
	switch q.Kind() {
	case wire.Reply:
		n.calls.Deliver(q.Message)
		w.WriteHeader(http.StatusAccepted)
		return
	case wire.Notification:
		d.server.said(q.Message, n)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	conn := connectionOf(r, c)
	conn.next(n)
	q.session = n
	// A broken connection does not end a request (MCP specification 2025-11-25, basic/transports, sending
	// messages).
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	failed := d.server.identify(q)
	if failed == nil && !n.running.Begin(q.ID, cancel) {
		a := write(q.ID, nil, duplicate(q.ID))
		out.end(http.StatusBadRequest, a.text)
		return
	}
	var res answer
	if failed == nil {
		var settle func()
		ctx, settle = out.inSession(ctx, n, r.Header.Get(wire.HeaderVersion), d.server.opts.StreamAfter)
		res, failed = d.server.dispatch(ctx, q)
		settle()
		n.running.End(q.ID) // before the client gets the response, because it may then reuse the ID
	}
	out.answer(q.ID, res, failed, false)
	conn.ended(out)
}

// batch answers a batch of messages of a session.
func (d *endpoint) batch(out *response, r *http.Request, n *session, q *request, all []wire.Message) {
	if !n.batches() {
		http.Error(out.w, "JSON-RPC batches are for sessions of versions before "+batchless, http.StatusBadRequest)
		return
	}
	out.session = n
	if text := n.answerBatch(context.WithoutCancel(r.Context()), q, all); text != nil {
		out.end(http.StatusOK, text)
	} else {
		out.w.WriteHeader(http.StatusAccepted)
	}
}

func duplicate(id json.RawMessage) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "duplicate in-flight request ID " + string(id)}
}

// get serves the stream for messages outside of requests, or resumes the stream of a request.
func (d *endpoint) get(w http.ResponseWriter, r *http.Request, c caller) {
	if r.Header.Get(wire.HeaderSession) == "" {
		http.Error(w, "Bad Request: GET requires an "+wire.HeaderSession+" header", http.StatusBadRequest)
		return
	}
	n, done := d.member(w, r, c)
	if n == nil {
		return
	}
	defer done()
	if last := r.Header.Get(wire.HeaderEvent); last != "" {
		if s, after := n.replays.find(last); s == nil || !s.stream.resume(r.Context(), w, s, after) {
			// A 404 would mean that the session does not exist.
			http.Error(w, "cannot resume after the event "+strconv.Quote(last)+": it belongs to another session or has expired", http.StatusBadRequest)
		}
		return
	}
	said := make(chan []byte, maxSaid)
	stop, ok := n.listen(func(text []byte) {
		select {
		case said <- text:
		default: // a client that does not read loses messages
		}
	})
	if !ok {
		http.Error(w, "stream ID conflicts with ongoing stream", http.StatusConflict)
		return
	}
	defer stop()
	out := &response{w: w, control: http.NewResponseController(w)}
	streamHeaders(w)
	_, _ = w.Write([]byte(": ok\n\n")) // some proxies forward the headers only with the first bytes of the body
	out.flush()
	for {
		select {
		case text := <-said:
			if out.write("", text) != nil || out.control.Flush() != nil {
				return
			}
		case <-n.over:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// maxSaid is the maximum number of messages that wait for a client.
const maxSaid = 64

// remove ends a session on request of its client.
func (d *endpoint) remove(w http.ResponseWriter, r *http.Request, c caller) {
	if r.Header.Get(wire.HeaderSession) == "" {
		http.Error(w, "Bad Request: DELETE requires an "+wire.HeaderSession+" header", http.StatusBadRequest)
		return
	}
	n, done := d.member(w, r, c)
	if n == nil {
		return
	}
	done()
	n.end()
	w.WriteHeader(http.StatusNoContent)
}

// noMethod answers a request with an HTTP method that is not allowed.
func noMethod(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
}

var errEmpty = errors.New("POST requires a non-empty body")

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// methodMoved notifies another process that this process hands the server over: the requests already sent
// get their responses, and the next process to run the server gets all later requests.
const methodMoved = "notifications/toolctl.dev/moved"

// maxRelayed limits the concurrent requests of one process.
const maxRelayed = 4096

// Relay serves a server of this process to another process. The process that a client reached applies the
// policies and counts and writes the audit log, so a Relay receives only what the server gets of a call.
type Relay struct {
	up *upstream
	s  *session
}

// Relay opens the session with a server for another process. The caller must then call Serve. The error is
// that of [Upstreams.Call], or [ErrElsewhere] if another process runs the server.
func (u *Upstreams) Relay(ctx context.Context, server v1.Key) (*Relay, error) {
	up, err := u.get(server)
	if err != nil {
		return nil, err
	}
	if !up.single() {
		return nil, up.unavailable("its manifest does not have replicas: one here")
	}
	s, err := up.acquire(ctx, &up.shared)
	if err != nil {
		return nil, err
	}
	if s.remote { // only one hop is allowed
		up.release(s)
		return nil, ErrElsewhere
	}
	return &Relay{up, s}, nil
}

// ErrElsewhere means that another process runs the server.
var ErrElsewhere = errors.New("another process runs the server")

// relaying is the state of a relay while Serve runs.
type relaying struct {
	*Relay
	stream *pipe
	ctx    context.Context // ends with the stream
	out    outbox

	open  wire.Running // requests of the other process
	asked wire.Calls

	mu      sync.Mutex
	under   int             // number of running requests
	watched map[string]bool // subscribed resources

	running sync.WaitGroup
}

// Serve answers the requests on a stream of newline-delimited JSON-RPC until the other side closes the
// stream, the server's session ends, or ctx ends. It closes the stream.
func (r *Relay) Serve(ctx context.Context, rwc io.ReadWriteCloser) {
	defer r.up.release(r.s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &relaying{Relay: r, ctx: ctx, asked: wire.Calls{Prefix: "q"}, watched: map[string]bool{}}
	t.out.log = r.up.log
	t.stream = newPipe(rwc, rwc, r.up.owner.opts.MaxMessageBytes, rwc.Close)
	defer t.stream.close()
	r.up.mu.Lock()
	r.up.relays[t] = true
	r.up.mu.Unlock()
	t.running.Go(func() {
		leaving := r.s.leaving
		for {
			select {
			case <-leaving:
				leaving = nil
				t.notify(methodMoved, nil)
			case <-r.s.done: // the running requests have their responses
				t.settle()
				t.stream.close()
				return
			case <-ctx.Done():
				t.stream.close()
				return
			}
		}
	})
	for {
		line, err := t.stream.in.Next()
		if err != nil {
			break
		}
		if m, err := wire.Parse(line); err == nil {
			t.take(m)
		}
	}
	cancel()
	t.asked.Close()
	r.up.mu.Lock()
	delete(r.up.relays, t)
	r.up.mu.Unlock()
	t.out.close()
	t.running.Wait()
	for uri := range t.watched {
		within, done := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
		_ = r.up.owner.Unsubscribe(within, r.up.key, uri) // a server that has ended needs no notice
		done()
	}
}

// settle waits until all requests that were read have been answered.
func (t *relaying) settle() {
	for t.ctx.Err() == nil {
		t.mu.Lock()
		n := t.under
		t.mu.Unlock()
		if n == 0 || sleep(t.ctx, retryWait/10) != nil {
			return
		}
	}
}

// take handles one message of the other process.
func (t *relaying) take(m wire.Message) {
	switch m.Kind() {
	case wire.Reply:
		t.asked.Deliver(m)
		return
	case wire.Notification:
		if m.Method == wire.MethodCancelled {
			t.open.Cancel(m, context.Canceled)
		}
		return
	}
	ctx, cancel := context.WithCancelCause(t.ctx)
	t.mu.Lock()
	full := t.under >= maxRelayed || !t.open.Begin(m.ID, cancel)
	if !full {
		t.under++
	}
	t.mu.Unlock()
	if full {
		cancel(nil)
		t.answer(m.ID, nil, &wire.Error{Message: "too many requests are running"})
		return
	}
	t.running.Go(func() {
		defer cancel(nil)
		result, failure := t.request(ctx, m)
		t.answer(m.ID, result, failure)
		t.open.End(m.ID)
		t.mu.Lock()
		t.under--
		t.mu.Unlock()
	})
}

// answer writes a response with an unchanged result.
func (t *relaying) answer(id, result json.RawMessage, failure *wire.Error) {
	var line bytes.Buffer
	err := wire.Answer(&line, id, result, failure)
	if err == nil {
		_, err = t.stream.write(t.ctx, line.Bytes())
	}
	if err != nil {
		t.up.log.Debug("an answer did not reach the other replica", slog.Any("error", err))
	}
}

func (t *relaying) notify(method string, params any) {
	if text, err := wire.Request("", method, params); err == nil {
		_, _ = t.stream.write(t.ctx, text) // the other side may have gone
	}
}

// tellRelays passes a notification on to other processes. A notification for a resource goes only to its
// subscribers. It is called under mu.
func (u *upstream) tellRelays(uri, method string, params any) {
	for t := range u.relays {
		t.mu.Lock()
		wanted := uri == "" || t.watched[uri]
		t.mu.Unlock()
		if wanted {
			t.out.put(func() { t.notify(method, params) })
		}
	}
}

// request answers one request of the other process.
func (t *relaying) request(ctx context.Context, m wire.Message) (json.RawMessage, *wire.Error) {
	switch m.Method {
	case "initialize":
		return t.hello()
	case "server/discover": // it would report the server's version, but the relay speaks that of initialize
		return nil, &wire.Error{Code: jsonrpc.CodeMethodNotFound, Message: "a relay must begin with initialize"}
	case "ping", "logging/setLevel":
		return json.RawMessage("{}"), nil
	case "resources/subscribe", "resources/unsubscribe":
		return t.subscribe(ctx, m)
	}
	req, err := t.readRequest(m)
	if err != nil {
		return nil, &wire.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	answer, _, err := t.up.do(WithPeer(ctx, req.peer), req.request)
	if err != nil {
		return nil, relayError(err)
	}
	return answer.Body, nil
}

// relayError keeps the information that distinguishes errors: the server's code, or 0 for a lost server.
func relayError(err error) *wire.Error {
	var said *v1.MCPError
	if errors.As(err, &said) {
		return &wire.Error{Code: said.Code, Message: said.Message, Data: said.Data}
	}
	return &wire.Error{Message: clip.Bytes(err.Error(), maxErrorText)}
}

// hello returns the description of the server, with the protocol version of a relay.
func (t *relaying) hello() (json.RawMessage, *wire.Error) {
	h := t.s.hello
	can := h.can()
	can.Logging = nil // log messages belong to no request
	h.Version, h.Versions, h.Capabilities = legacyVersion, nil, &can
	return jsontext.Of(h), nil
}

func (t *relaying) subscribe(ctx context.Context, m wire.Message) (json.RawMessage, *wire.Error) {
	var p struct{ URI string }
	if p.URI, _ = m.Params.Text("uri"); p.URI == "" {
		return nil, &wire.Error{Code: jsonrpc.CodeInvalidParams, Message: "expected a uri"}
	}
	on := m.Method == "resources/subscribe"
	t.mu.Lock()
	change := t.watched[p.URI] != on
	t.mu.Unlock()
	if !change {
		return json.RawMessage("{}"), nil
	}
	f := t.up.owner.Unsubscribe
	if on {
		f = t.up.owner.Subscribe
	}
	if err := f(ctx, t.up.key, p.URI); err != nil {
		return nil, relayError(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched[p.URI] = true; !on {
		delete(t.watched, p.URI)
	}
	return json.RawMessage("{}"), nil
}

// relayed is a request of another process, with its client.
type relayed struct {
	request
	peer *Peer
}

// readRequest reads a request in the form that is sent to the server.
func (t *relaying) readRequest(m wire.Message) (relayed, error) {
	req := relayed{request: request{method: m.Method, relay: t.Relay}}
	if strings.ContainsAny(m.Method, `"\`) {
		return req, errors.New("expected a method")
	}
	meta := map[string]json.RawMessage{}
	for _, p := range m.Meta {
		meta[p.Name] = p.Value
	}
	for _, p := range m.Params {
		if p.Name != "_meta" {
			quoted := jsontext.Of(p.Name)
			req.params = append(req.params, param{string(quoted[1 : len(quoted)-1]), p.Value})
		}
	}
	if token := meta["progressToken"]; token != nil {
		delete(meta, "progressToken")
		req.progress = func(p Progress) {
			t.notify("notifications/progress", struct {
				Token json.RawMessage `json:"progressToken"`
				Progress
			}{token, p})
		}
	}
	if raw := meta[wire.MetaCapabilities]; raw != nil {
		delete(meta, wire.MetaCapabilities)
		can, err := CapabilitiesOf(raw)
		if err != nil {
			return req, err
		}
		if t.s.modern() {
			req.peer = &Peer{Modern: true, Names: true, Can: can, Ask: func(ctx context.Context, all map[string]InputRequest) (map[string]json.RawMessage, error) {
				return t.ask(ctx, string(bytes.Trim(m.ID, `"`)), all)
			}}
		}
	}
	req.meta = meta
	return req, nil
}

// ask passes the requests of the server, made during a request of the other process, to that process's
// client.
func (t *relaying) ask(ctx context.Context, id string, all map[string]InputRequest) (map[string]json.RawMessage, error) {
	answers := map[string]json.RawMessage{}
	for name, asked := range all {
		var params map[string]json.RawMessage
		if json.Unmarshal(orNull(asked.Params), &params) != nil {
			return nil, errors.New("the server's request has no parameters")
		}
		if params == nil {
			params = map[string]json.RawMessage{}
		}
		var meta map[string]any
		_ = json.Unmarshal(orNull(params["_meta"]), &meta) // a value of another type is left out
		if meta == nil {
			meta = map[string]any{}
		}
		meta[relayedKey] = id
		params["_meta"] = jsontext.Of(meta)
		answer, err := t.askOne(ctx, InputRequest{Method: asked.Method, Params: jsontext.Of(params)})
		if err != nil {
			return nil, err
		}
		answers[name] = answer
	}
	return answers, nil
}

func (t *relaying) askOne(ctx context.Context, r InputRequest) (json.RawMessage, error) {
	id := t.asked.NewID()
	text, err := wire.Request(id, r.Method, r.Params)
	if err != nil {
		return nil, err
	}
	m, err := t.asked.Do(ctx, id, func() error {
		_, err := t.stream.write(ctx, text)
		return err
	}, func(text []byte) { _, _ = t.stream.write(t.ctx, text) })
	if e := m.Failure(); e != nil {
		return nil, &v1.MCPError{Code: e.Code, Message: e.Message}
	}
	return m.Body, err
}

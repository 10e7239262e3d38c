package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
)

// methodMoved tells another process that the server is handed over: the requests that it has sent are
// answered, and the next are for whoever has the server then.
const methodMoved = "notifications/toolctl.dev/moved"

// maxRelayed bounds the requests of one process that are under way.
const maxRelayed = 4096

// Relay is a server of this process for another one. Policies, counts and the audit are
// those of the process that a client reached: nothing of a call but what the server gets comes here.
type Relay struct {
	up *upstream
	s  *session
}

// Relay opens the session with a server for another process; Serve must follow. The error is
// that of [Upstreams.Call], and says nothing was started when this process does not have the server.
func (u *Upstreams) Relay(ctx context.Context, server v1.Key) (*Relay, error) {
	up, err := u.get(server)
	if err != nil {
		return nil, err
	}
	if !up.single() {
		return nil, up.unavailable("its manifest does not say replicas: one here")
	}
	s, err := up.acquire(ctx, &up.shared)
	if err != nil {
		return nil, err
	}
	if s.remote { // one hop
		up.release(s)
		return nil, ErrElsewhere
	}
	return &Relay{up, s}, nil
}

// ErrElsewhere says that another process has the server.
var ErrElsewhere = errors.New("another process has the server")

// relaying is a relay while it is served.
type relaying struct {
	*Relay
	stream *stream
	ctx    context.Context // ends with the stream
	out    outbox

	mu      sync.Mutex
	open    map[string]context.CancelFunc // requests, by id
	asked   map[string]chan *jsonrpc.Response
	asks    int
	watched map[string]bool // resources that were subscribed to

	running sync.WaitGroup
}

// Serve answers the requests that come over a stream of newline-delimited JSON-RPC, until the other
// side closes it, the server's session ends, or ctx does. It closes the stream.
func (r *Relay) Serve(ctx context.Context, rwc io.ReadWriteCloser) {
	defer r.up.release(r.s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &relaying{Relay: r, ctx: ctx, open: map[string]context.CancelFunc{}, asked: map[string]chan *jsonrpc.Response{}, watched: map[string]bool{}}
	t.out.log = r.up.log
	t.stream = newStream(rwc, rwc, r.up.owner.opts.MaxMessageBytes, func([]byte) {}, rwc.Close)
	defer t.stream.Close()
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
			case <-r.s.done: // what was under way is answered
				t.settle()
				t.stream.Close()
				return
			case <-ctx.Done():
				t.stream.Close()
				return
			}
		}
	})
	for {
		m, err := t.stream.Read(ctx)
		if err != nil {
			break
		}
		t.take(m)
	}
	cancel()
	r.up.mu.Lock()
	delete(r.up.relays, t)
	r.up.mu.Unlock()
	t.out.close()
	t.running.Wait()
	for uri := range t.watched {
		within, done := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
		_ = r.up.owner.Unsubscribe(within, r.up.key, uri) // a server that is gone has forgotten it
		done()
	}
}

// settle waits until the requests that were read have been answered.
func (t *relaying) settle() {
	for t.ctx.Err() == nil {
		t.mu.Lock()
		n := len(t.open)
		t.mu.Unlock()
		if n == 0 || sleep(t.ctx, retryWait/10) != nil {
			return
		}
	}
}

// take takes one message of the other process.
func (t *relaying) take(m jsonrpc.Message) {
	switch m := m.(type) {
	case *jsonrpc.Response:
		t.mu.Lock()
		if id, ok := m.ID.Raw().(string); ok && t.asked[id] != nil {
			t.asked[id] <- m // which has room for it
			delete(t.asked, id)
		}
		t.mu.Unlock()
	case *jsonrpc.Request:
		id := fmt.Sprint(m.ID.Raw())
		if !m.IsCall() {
			if m.Method == "notifications/cancelled" {
				t.cancel(m.Params)
			}
			return
		}
		ctx, cancel := context.WithCancel(t.ctx)
		t.mu.Lock()
		full := len(t.open) >= maxRelayed || t.open[id] != nil
		if !full {
			t.open[id] = cancel
		}
		t.mu.Unlock()
		if full {
			cancel()
			t.answer(m.ID, nil, &jsonrpc.Error{Message: "too many requests are under way"})
			return
		}
		t.running.Go(func() {
			defer cancel()
			result, failure := t.request(ctx, id, m)
			t.answer(m.ID, result, failure)
			t.mu.Lock()
			delete(t.open, id)
			t.mu.Unlock()
		})
	}
}

// cancel ends a request that is taken back.
func (t *relaying) cancel(params json.RawMessage) {
	var p struct {
		ID any `json:"requestId"`
	}
	_ = json.Unmarshal(params, &p) // without an id nothing is found
	t.mu.Lock()
	defer t.mu.Unlock()
	if cancel := t.open[fmt.Sprint(p.ID)]; cancel != nil {
		cancel()
	}
}

// answer writes a result as it came: the SDK would write some characters otherwise.
func (t *relaying) answer(id jsonrpc.ID, result json.RawMessage, failure *jsonrpc.Error) {
	var line bytes.Buffer
	line.WriteString(`{"jsonrpc":"2.0","id":`)
	line.Write(jsontext.Of(id.Raw()))
	if failure != nil {
		line.WriteString(`,"error":`)
		line.Write(jsontext.Of(failure))
	} else {
		line.WriteString(`,"result":`)
		if err := json.Compact(&line, result); err != nil { // it was taken from a message
			return
		}
	}
	line.WriteString("}\n")
	if _, err := t.stream.write(t.ctx, line.Bytes()); err != nil {
		t.up.log.Debug("an answer did not reach the other replica", slog.Any("error", err))
	}
}

func (t *relaying) notify(method string, params any) {
	raw, err := json.Marshal(params)
	if err == nil {
		if params == nil {
			raw = nil
		}
		_ = t.stream.Write(t.ctx, &jsonrpc.Request{Method: method, Params: raw}) // the other side may be gone
	}
}

// tellRelays passes a notification on to other processes; of a resource to those that subscribed to it. It is called under mu.
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
func (t *relaying) request(ctx context.Context, id string, m *jsonrpc.Request) (json.RawMessage, *jsonrpc.Error) {
	switch m.Method {
	case "initialize":
		return t.hello()
	case "server/discover": // which would be another server's version: the relay speaks that of initialize
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "a relay begins with initialize"}
	case "ping", "logging/setLevel":
		return json.RawMessage("{}"), nil
	case "resources/subscribe", "resources/unsubscribe":
		return t.subscribe(ctx, m)
	}
	req, err := t.readRequest(id, m)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	result, err := t.up.over(ctx, t.s, req.request, req.peer)
	if err != nil {
		return nil, relayError(err)
	}
	return result, nil
}

// relayError keeps what tells errors apart: a code of the server, and 0 for a server that was lost.
func relayError(err error) *jsonrpc.Error {
	var said *v1.MCPError
	if errors.As(err, &said) {
		return &jsonrpc.Error{Code: said.Code, Message: said.Message, Data: said.Data}
	}
	return &jsonrpc.Error{Message: clip.Bytes(err.Error(), maxErrorText)}
}

// hello is what the server said of itself, in the version of a relay.
func (t *relaying) hello() (json.RawMessage, *jsonrpc.Error) {
	init := *t.s.client.InitializeResult()
	init.ProtocolVersion = legacyVersion
	if init.Capabilities == nil {
		init.Capabilities = &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}
	}
	caps := *init.Capabilities
	caps.Logging = nil // its messages are of no request
	init.Capabilities = &caps
	raw, err := json.Marshal(init)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return raw, nil
}

func (t *relaying) subscribe(ctx context.Context, m *jsonrpc.Request) (json.RawMessage, *jsonrpc.Error) {
	var p struct {
		URI string `json:"uri"`
	}
	if json.Unmarshal(m.Params, &p) != nil || p.URI == "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "expected a uri"}
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

// relayed is a request of another process, and the client that it is for.
type relayed struct {
	request
	peer *Peer
}

// readRequest reads a request as it is sent to the server.
func (t *relaying) readRequest(id string, m *jsonrpc.Request) (relayed, error) {
	req := relayed{request: request{method: m.Method}}
	var params, meta map[string]json.RawMessage
	if json.Unmarshal(orNull(m.Params), &params) != nil || json.Unmarshal(orNull(params["_meta"]), &meta) != nil || strings.ContainsAny(m.Method, `"\`) {
		return req, errors.New("expected an object of parameters")
	}
	delete(params, "_meta")
	for name, value := range params {
		quoted := jsontext.Of(name)
		req.params = append(req.params, param{string(quoted[1 : len(quoted)-1]), value})
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
	if raw := meta[metaCapabilities]; raw != nil {
		delete(meta, metaCapabilities)
		var can sdk.ClientCapabilities
		if err := json.Unmarshal(raw, &can); err != nil {
			return req, err
		}
		if t.s.modern() {
			req.peer = &Peer{Modern: true, Names: true, Can: capabilitiesOf(&can), Ask: func(ctx context.Context, all map[string]InputRequest) (map[string]json.RawMessage, error) {
				return t.ask(ctx, id, all)
			}}
		}
	}
	req.meta = maps.Clone(meta)
	return req, nil
}

// capabilitiesOf reads what [Capabilities.wire] wrote.
func capabilitiesOf(c *sdk.ClientCapabilities) Capabilities {
	can := Capabilities{Sampling: c.Sampling != nil, Roots: c.RootsV2 != nil}
	if e := c.Elicitation; e != nil {
		can.Form, can.URL = e.Form != nil, e.URL != nil
	}
	if s := c.Sampling; s != nil {
		can.SamplingTools, can.SamplingContext = s.Tools != nil, s.Context != nil
	}
	if r := c.RootsV2; r != nil {
		can.RootsChanged = r.ListChanged
	}
	return can
}

// ask has the client of the other process answer what the server asks for within a request.
func (t *relaying) ask(ctx context.Context, id string, all map[string]InputRequest) (map[string]json.RawMessage, error) {
	answers := map[string]json.RawMessage{}
	for name, asked := range all {
		var params map[string]json.RawMessage
		if json.Unmarshal(orNull(asked.Params), &params) != nil {
			return nil, errors.New("what the server asks has no parameters")
		}
		if params == nil {
			params = map[string]json.RawMessage{}
		}
		var meta map[string]any
		_ = json.Unmarshal(orNull(params["_meta"]), &meta) // of another type it is left out
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
	came := make(chan *jsonrpc.Response, 1)
	t.mu.Lock()
	t.asks++
	name := "q" + strconv.Itoa(t.asks)
	t.asked[name] = came
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.asked, name)
		t.mu.Unlock()
	}()
	id, err := jsonrpc.MakeID(name)
	if err == nil {
		err = t.stream.Write(ctx, &jsonrpc.Request{ID: id, Method: r.Method, Params: r.Params})
	}
	if err != nil {
		return nil, err
	}
	select {
	case m := <-came:
		if m.Error != nil {
			var wire *jsonrpc.Error
			if errors.As(m.Error, &wire) {
				return nil, &v1.MCPError{Code: wire.Code, Message: wire.Message}
			}
			return nil, m.Error
		}
		return bytes.TrimSpace(m.Result), nil
	case <-ctx.Done():
		t.notify("notifications/cancelled", map[string]string{"requestId": name})
		return nil, ctx.Err()
	}
}

// over is do over one session: a request of another process is not sent again from here.
func (u *upstream) over(ctx context.Context, s *session, r request, p *Peer) (json.RawMessage, error) {
	var of *clientRequest
	if p != nil {
		of = &clientRequest{ctx: ctx, peer: p}
	}
	for round := 1; ; round++ {
		x := &exchange{method: r.method, params: append(r.params[:len(r.params):len(r.params)], r.more...), clientRequest: of}
		got, err := u.try(ctx, s, x, r)
		switch a := got.answer; {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, u.lost(s, got, r, err)
		case a == nil:
			return nil, u.unavailable("the server's answer was lost")
		case a.err != nil:
			return nil, u.refused(s, a)
		default:
			s.proven.Store(true)
			in, unknown := u.finalOf(s, a.result)
			switch {
			case unknown != nil:
				return nil, unknown
			case in == nil:
				return a.result, nil
			}
			if len(in.Requests) == 0 && round > maxBusy {
				return nil, u.unavailable("the server keeps deferring the request")
			}
			if r.more, err = u.fulfil(ctx, s, of, in, round); err != nil {
				return nil, err
			}
		}
	}
}

package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/internal/plainhttp"
)

const (
	versionHeader = "Mcp-Protocol-Version"
	eventHeader   = "Last-Event-Id"
)

// sent is the transport of one request over streamable HTTP: it notes how far it came.
type sent struct {
	l       *httpLink
	got     receipt
	release func()
}

// RoundTrip sends the request, or what a redirect made of it.
func (t *sent) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, finish, release, err := t.l.roundTrip(req)
	if err != nil {
		t.got.reached = t.got.reached || !neverSent(err)
		return nil, err
	}
	t.got.reached, t.got.status, t.release = true, resp.StatusCode, release
	t.l.bound(req, resp, finish)
	return resp, nil
}

// send sends a request and returns when its answer came or cannot come any more.
func (l *httpLink) send(ctx context.Context, x *exchange) (receipt, error) {
	if l.sse {
		return l.conn.send(ctx, x)
	}
	var body bytes.Buffer
	if err := x.encode(&body); err != nil {
		return receipt{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.to.String(), &body)
	if err != nil {
		return receipt{}, err
	}
	l.setHeaders(req, x)
	t := &sent{l: l}
	client := &http.Client{Transport: l.withTokens(t), CheckRedirect: checkRedirect}
	resp, err := client.Do(req)
	if err == nil {
		t.got.answer, err = t.answer(client, req, resp, x)
	}
	if ctx.Err() != nil && t.got.answer == nil && !l.s.modern() {
		l.takeBack(req, x.id, ctx.Err())
	}
	return t.got, err
}

func (l *httpLink) setHeaders(req *http.Request, x *exchange) {
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set(versionHeader, l.s.client.InitializeResult().ProtocolVersion)
	if id := l.s.client.ID(); id != "" {
		h.Set(sessionHeader, id)
	}
	if !l.s.modern() {
		return
	}
	h.Set("Mcp-Method", x.method)
	if x.name != "" {
		h.Set("Mcp-Name", x.name)
	}
	if x.method == "tools/call" {
		l.s.upstream.setParamHeaders(h, x)
	}
}

// answer reads the answer from the response.
func (t *sent) answer(client *http.Client, req *http.Request, resp *http.Response, x *exchange) (*answer, error) {
	kind := mediaType(resp)
	switch {
	case resp.StatusCode < 300 && kind == "text/event-stream":
		return t.follow(client, req, resp, x)
	case resp.StatusCode < 300 && kind != "application/json":
		resp.Body.Close()
		return nil, fmt.Errorf("the server answered with the content type %q, not application/json or text/event-stream", kind)
	}
	data, err := readBody(resp)
	if err != nil {
		return nil, err
	}
	m, ok := split(data)
	isAnswer := ok && m.method == "" && (m.result != nil || m.failure != nil)
	switch {
	case resp.StatusCode >= 300 && req.Header.Get(sessionHeader) != "" && sessionGone(resp.StatusCode, data):
		t.got.gone = true
		return nil, errors.New(statusText(resp.StatusCode))
	case resp.StatusCode >= 300 && (!isAnswer || m.failure == nil):
		t.got.broken = !transient(resp.StatusCode)
		return nil, errors.New(statusText(resp.StatusCode))
	case !isAnswer:
		return nil, fmt.Errorf("the server answered what is not a JSON-RPC response: %s", excerpt(data))
	}
	t.l.s.heard.Store(true)
	return &answer{m.result, m.error()}, nil
}

// transient reports whether a status says nothing of the session (MCP specification,
// basic/transports).
func transient(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// readBody reads the whole body of a response, and closes it.
func readBody(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 {
		b.Grow(int(min(n, 1<<20)) + bytes.MinRead)
	}
	_, err := b.ReadFrom(resp.Body)
	return b.Bytes(), err
}

// maxResumptions is how often a stream is taken up again that brings nothing new.
const maxResumptions = 5

// follow reads a stream until the answer is there. A stream that ends before is taken up
// again where it ended when its events have ids (MCP specification, basic/transports,
// resumability and redelivery; 2026-07-28 has no such thing). What follows the answer is
// read without the caller, so that the connection can be used again.
func (t *sent) follow(client *http.Client, req *http.Request, resp *http.Response, x *exchange) (*answer, error) {
	var last string
	var wait time.Duration
	for idle := 0; ; {
		e := newEvents(resp.Body, t.l.max, nil)
		e.keep = func(n int) error { return budget.Keep(req.Context(), n) }
		before := last
		a, err := t.read(e, req, x, &last, &wait)
		if a != nil {
			t.release()
			if plainhttp.Sends(req) { // what follows is left where it is
				e.Close()
				return a, nil
			}
			t.l.s.aside(func() {
				_, _ = io.Copy(io.Discard, e.body) // whatever it is, the answer has come
				e.Close()
			})
			return a, nil
		}
		e.Close()
		if wait > 0 && err == errEnded { //nolint:errorlint // a connection that broke is another error
			polled(req.Context(), wait)
		}
		switch idle++; {
		case last != before:
			idle = 0
		case idle > maxResumptions:
			return nil, fmt.Errorf("the response ended %d times without the answer", idle)
		}
		switch {
		case req.Context().Err() != nil:
			return nil, req.Context().Err()
		case err != nil && (last == "" || t.l.s.modern() || !errors.Is(err, errEnded)):
			return nil, err
		}
		if err := sleep(req.Context(), cmp.Or(wait, retryWait<<idle+rand.N(retryWait))); err != nil {
			return nil, err
		}
		if resp, err = t.resume(client, req, last); err != nil { //nolint:bodyclose // its events close it
			return nil, err
		}
	}
}

// errEnded says that a stream ended without the answer.
var errEnded = errors.New("the response ended without the answer")

// read reads the events of a stream up to the answer. It notes the id of the last event,
// and how long the server asks to wait before the stream is taken up again.
func (t *sent) read(e *events, req *http.Request, x *exchange, last *string, wait *time.Duration) (*answer, error) {
	reply := func(id, result json.RawMessage, err *jsonrpc.Error) { t.l.post(req, id, result, err) }
	for {
		ev, err := e.event()
		var long tooLongError
		switch {
		case errors.Is(err, io.EOF):
			return nil, errEnded
		case errors.As(err, &long), err != nil && *last == "":
			return nil, err
		case err != nil: // the connection broke
			return nil, fmt.Errorf("%w: %w", errEnded, err)
		}
		*last = cmp.Or(ev.id, *last)
		if ms, err := strconv.ParseUint(ev.retry, 10, 31); err == nil {
			*wait = time.Duration(ms) * time.Millisecond
		}
		if len(ev.data) == 0 || ev.named {
			continue
		}
		m, ok := split(ev.data)
		switch {
		case !ok:
			return nil, fmt.Errorf("the server sent an event that is not JSON-RPC: %s", excerpt(ev.data))
		case m.method != "":
			if _, err := t.l.s.hear(&m, x, reply); err != nil {
				return nil, err
			}
		case m.result != nil || m.failure != nil:
			t.l.s.heard.Store(true)
			return &answer{m.result, m.error()}, nil
		}
	}
}

// resume takes a stream up again after an event.
func (t *sent) resume(client *http.Client, of *http.Request, last string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(of.Context(), http.MethodGet, t.l.to.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, k := range []string{sessionHeader, versionHeader} {
		if v := of.Header.Get(k); v != "" {
			req.Header.Set(k, v)
		}
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set(eventHeader, last)
	resp, err := client.Do(req)
	if err == nil && (resp.StatusCode >= 300 || mediaType(resp) != "text/event-stream") {
		err = errors.Join(fmt.Errorf("the response ended and could not be resumed: %s", statusText(resp.StatusCode)), resp.Body.Close())
	}
	return resp, err
}

// takeBack tells an older server that nobody waits for an answer any more (MCP
// specification, basic/utilities/cancellation). Others see it by the connection.
func (l *httpLink) takeBack(req *http.Request, id string, why error) {
	l.s.aside(func() {
		body := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q,"reason":%q}}`, id, why)
		_ = l.tell(req, body) // a server that cannot be told finds out when it answers
	})
}

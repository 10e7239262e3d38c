package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/internal/netaddr"
	"toolctl.dev/toolctl/internal/response"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// httpLink is a link over streamable HTTP. Each request is a POST, and the HTTP response is the JSON-RPC
// response or a stream that ends with it.
type httpLink struct {
	s     *session
	base  http.RoundTripper
	to    *url.URL    // the server's address
	head  http.Header // sent to the server's own origin only
	oauth oauthHandler
	max   int // maximum size of one message
	now   func() time.Time
	stale func() // takes the session out of use; it ends after its calls

	streams sync.WaitGroup // for messages outside of requests
	ctx     context.Context
	stop    context.CancelFunc // ends the streams and all requests

	mu   sync.Mutex
	late map[*body]time.Time // bodies that still continue after the JSON-RPC response
}

const (
	// closeTimeout limits the request that ends a session, and the data that follows a JSON-RPC response.
	closeTimeout = 2 * time.Second
	// maxErrorBody limits the body of a response that reports an error.
	maxErrorBody = 1 << 20
	// maxResumptions limits how often a stream is resumed without bringing anything new.
	maxResumptions = 5
)

var errCut = errors.New("the session is closed")

func (l *httpLink) begin()             { l.ctx, l.stop = context.WithCancel(context.Background()) }
func (l *httpLink) cut()               { l.stop() }
func (l *httpLink) end()               { l.streams.Wait() }
func (l *httpLink) outcome(bool) error { return nil }

// trip is the transport for one request. It records how far the request came.
type trip struct {
	l   *httpLink
	got receipt
}

// RoundTrip sends the request, or the request that a redirect made of it.
func (t *trip) RoundTrip(req *http.Request) (*http.Response, error) {
	l, own := t.l, sameOrigin(req.URL, t.l.to)
	if !own && req.Response == nil {
		return nil, fmt.Errorf("the server sends messages to another origin, %s", origin(req.URL))
	}
	if l.ctx.Err() != nil && req.Method != http.MethodDelete {
		return nil, errCut
	}
	resp, err := l.base.RoundTrip(l.dressed(req, own))
	if err != nil {
		t.got.reached = t.got.reached || !neverSent(err)
		return nil, err
	}
	t.got.reached, t.got.status = true, resp.StatusCode
	b := &body{ReadCloser: resp.Body}
	switch {
	case resp.StatusCode >= 300:
		b.left = maxErrorBody
	case mediaType(resp) != "text/event-stream": // bounded event by event
		b.left = int64(l.max)
		b.keep = func(n int) error { return budget.Keep(req.Context(), n) }
	}
	resp.Body = b
	return resp, nil
}

// dressed returns the request with the headers of the manifest. These go only to the server's own origin,
// so that a redirect elsewhere gets no credentials.
func (l *httpLink) dressed(req *http.Request, own bool) *http.Request {
	if len(l.head) == 0 && own {
		return req
	}
	out := *req
	out.Header = req.Header.Clone()
	if own {
		maps.Copy(out.Header, l.head)
		return &out
	}
	for _, k := range []string{"Authorization", "Cookie", wire.HeaderSession} {
		out.Header.Del(k)
	}
	for k := range l.head {
		out.Header.Del(k)
	}
	return &out
}

// do sends one HTTP request of the session. The response lives until its body is closed or the session
// ends. The end of ctx also ends it, unless keep was called.
func (l *httpLink) do(ctx context.Context, t *trip, method string, to *url.URL, message []byte, set func(http.Header)) (resp *http.Response, keep func() bool, err error) {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	off := context.AfterFunc(l.ctx, cancel)
	req, err := http.NewRequestWithContext(within, method, to.String(), bytes.NewReader(message))
	if err != nil {
		cancel()
		return nil, nil, err
	}
	h := req.Header
	if message != nil {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodGet {
		h.Set("Accept", "text/event-stream")
	}
	if l.s.open.Load() {
		l.sessionHeaders(h)
	}
	if set != nil {
		set(h)
	}
	client := &http.Client{Transport: l.withTokens(t), CheckRedirect: checkRedirect}
	if resp, err = client.Do(req); err != nil {
		stop()
		off()
		cancel()
		if ctx.Err() != nil {
			err = ctx.Err()
		} else if l.ctx.Err() != nil {
			err = errCut
		}
		return nil, nil, err
	}
	b, ok := resp.Body.(*body)
	if !ok {
		b = &body{ReadCloser: resp.Body}
		resp.Body = b
	}
	b.finish = func() { stop(); off(); cancel() }
	return resp, stop, nil
}

func (l *httpLink) sessionHeaders(h http.Header) {
	h.Set(wire.HeaderVersion, l.s.hello.Version)
	if id := l.s.hello.session; id != "" {
		h.Set(wire.HeaderSession, id)
	}
}

func (l *httpLink) send(ctx context.Context, x *exchange) (receipt, error) {
	message, err := x.text()
	if err != nil {
		return receipt{}, err
	}
	l.endLate()
	t := &trip{l: l}
	resp, keep, err := l.do(ctx, t, http.MethodPost, l.to, message, func(h http.Header) { l.standard(h, x) })
	if err == nil {
		if id := resp.Header.Get(wire.HeaderSession); id != "" && x.method == "initialize" {
			l.s.hello.session = id
		}
		t.got.answer, err = l.answer(ctx, t, resp, keep, x)
	}
	if ctx.Err() != nil && t.got.answer == nil && !l.s.modern() && !x.quiet { // older servers notice it by the connection
		l.s.aside(func() { _ = l.tell(context.Background(), wire.Cancelled(x.id, ctx.Err())) })
	}
	return t.got, err
}

// standard sets the headers that repeat parts of a request (MCP 2026-07-28, basic/transports, standard
// headers).
func (l *httpLink) standard(h http.Header, x *exchange) {
	if x.version != "" {
		h.Set(wire.HeaderVersion, x.version)
	}
	if cmp.Or(x.version, l.s.hello.Version) < wire.ModernVersion {
		return
	}
	h.Set(wire.HeaderMethod, x.method)
	if x.name != "" {
		h.Set(wire.HeaderName, x.name)
	}
	if x.method == "tools/call" {
		l.s.upstream.setParamHeaders(h, x)
	}
}

// answer reads the JSON-RPC response from the HTTP response.
func (l *httpLink) answer(ctx context.Context, t *trip, resp *http.Response, keep func() bool, x *exchange) (*wire.Message, error) {
	kind := mediaType(resp)
	switch {
	case resp.StatusCode < 300 && kind == "text/event-stream":
		return l.follow(ctx, t, resp, keep, x)
	case resp.StatusCode < 300 && kind != "application/json":
		resp.Body.Close()
		return nil, &alienError{resp.Header.Get("Content-Type")}
	}
	data, err := readBody(resp)
	if err != nil {
		return nil, err
	}
	m, bad := wire.Parse(data)
	isAnswer := bad == nil && m.Kind() == wire.Reply
	switch {
	case resp.StatusCode >= 300 && l.s.hello.session != "" && sessionGone(resp.StatusCode, data):
		t.got.gone = true
		return nil, errors.New(statusText(resp.StatusCode))
	case resp.StatusCode >= 300 && (!isAnswer || m.Error == nil):
		t.got.broken = !transient(resp.StatusCode)
		return nil, errors.New(statusText(resp.StatusCode))
	case !isAnswer:
		return nil, fmt.Errorf("the server's answer is not a JSON-RPC response: %s", excerpt(data))
	}
	l.s.heard.Store(true)
	return &m, nil
}

// alienError means that a server responded with a content type that MCP does not define.
type alienError struct{ kind string }

func (e *alienError) Error() string {
	return fmt.Sprintf("the server answered with the content type %q, not application/json or text/event-stream", e.kind)
}

// sessionGone reports whether a response means that the server does not know the session: 404 (MCP
// specification, basic/transports, session management), or 400 with a text about the session, as some
// servers send it.
func sessionGone(status int, data []byte) bool {
	return status == http.StatusNotFound ||
		status == http.StatusBadRequest && bytes.Contains(bytes.ToLower(data), []byte("session"))
}

// transient reports whether a status does not affect the session (MCP specification, basic/transports).
func transient(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// readBody reads the whole body of a response and closes it.
func readBody(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 {
		b.Grow(int(min(n, 1<<20)) + bytes.MinRead)
	}
	_, err := b.ReadFrom(resp.Body)
	return b.Bytes(), err
}

// place is the position at which a stream can be resumed.
type place struct {
	last string        // the ID of the last event
	wait time.Duration // the delay that the server requested
}

// follow reads a stream until the JSON-RPC response arrives. A stream that ends earlier is resumed if its
// events have IDs (MCP specification, basic/transports, resumability and redelivery; not in 2026-07-28).
// Data after the response is read in the background, so that the connection can be reused.
func (l *httpLink) follow(ctx context.Context, t *trip, resp *http.Response, keep func() bool, x *exchange) (*wire.Message, error) {
	var at place
	for idle := 0; ; {
		e := events(resp.Body, l.max, func(n int) error { return budget.Keep(ctx, n) })
		before := at.last
		a, err := l.read(e, x, &at, l.tell)
		if a != nil {
			if keep() {
				l.discard(resp.Body.(*body))
			} else {
				resp.Body.Close()
			}
			return a, nil
		}
		resp.Body.Close()
		if at.wait > 0 && err == errEnded { //nolint:errorlint // a connection that broke is another error
			polled(ctx, at.wait)
		}
		switch idle++; {
		case at.last != before:
			idle = 0
		case idle > maxResumptions:
			return nil, fmt.Errorf("the response ended %d times without a result", idle)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && (at.last == "" || l.s.modern() || !errors.Is(err, errEnded)):
			return nil, err
		}
		if err := sleep(ctx, cmp.Or(at.wait, retryWait<<idle+rand.N(retryWait))); err != nil {
			return nil, err
		}
		if resp, keep, err = l.resume(ctx, t, at.last); err != nil { //nolint:bodyclose // its events close it
			return nil, err
		}
	}
}

// discard reads the data after a JSON-RPC response for a limited time.
func (l *httpLink) discard(b *body) {
	l.mu.Lock()
	l.late[b] = time.Now()
	l.mu.Unlock()
	l.s.aside(func() {
		_, _ = io.Copy(io.Discard, b) // the response has arrived, so an error does not matter
		b.Close()
		l.mu.Lock()
		delete(l.late, b)
		l.mu.Unlock()
	})
}

// endLate ends HTTP responses that continue long after the JSON-RPC response. It is called at each request,
// which costs less than a timer per response.
func (l *httpLink) endLate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for b, since := range l.late {
		if time.Since(since) > closeTimeout {
			b.finish()
			delete(l.late, b)
		}
	}
}

// errEnded means that a stream ended before the JSON-RPC response.
var errEnded = errors.New("the response ended without a result")

// events returns the events of a stream. It holds each to a size, and keep, which may be nil, counts the bytes of the
// longest.
func events(stream io.Reader, max int, keep func(n int) error) *response.Events {
	kept := 0
	return response.NewEvents(stream, func(size int) error {
		if size > max {
			return wire.LongError(max)
		}
		n := size - kept
		if n <= 0 || keep == nil {
			return nil
		}
		kept = size
		return keep(n)
	})
}

// read reads the events of a stream up to the response to x, or without end if x is nil.
func (l *httpLink) read(e *response.Events, x *exchange, at *place, tell func(context.Context, []byte) error) (*wire.Message, error) {
	for {
		ev, err := e.Next()
		var long wire.LongError
		switch {
		case errors.Is(err, io.EOF):
			return nil, errEnded
		case errors.As(err, &long):
			return nil, fmt.Errorf("the server sent %w", err)
		case err != nil && at.last == "" && x != nil:
			return nil, err
		case err != nil: // the connection broke
			return nil, fmt.Errorf("%w: %w", errEnded, err)
		}
		at.last = cmp.Or(ev.ID, at.last)
		if ms, err := strconv.ParseUint(ev.Retry, 10, 31); err == nil {
			at.wait = time.Duration(ms) * time.Millisecond
		}
		if len(ev.Data) == 0 || ev.Name != "" && ev.Name != "message" {
			continue
		}
		m, err := wire.Parse(ev.Data)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the server sent an event that is not JSON-RPC: %s", excerpt(ev.Data))
		case m.Kind() != wire.Reply:
			if err := l.s.hear(m, x, func(text []byte) error { return tell(context.Background(), text) }); err != nil {
				return nil, err
			}
		case x != nil:
			l.s.heard.Store(true)
			return &m, nil
		default:
			l.s.heard.Store(true)
			l.s.calls.Deliver(m)
		}
	}
}

// resume resumes a stream after an event.
func (l *httpLink) resume(ctx context.Context, t *trip, last string) (*http.Response, func() bool, error) {
	resp, keep, err := l.do(ctx, t, http.MethodGet, l.to, nil, func(h http.Header) {
		if last != "" {
			h.Set(wire.HeaderEvent, last)
		}
	})
	if err == nil && (resp.StatusCode >= 300 || mediaType(resp) != "text/event-stream") {
		err = errors.Join(fmt.Errorf("the response ended and could not be resumed: %s", statusText(resp.StatusCode)), resp.Body.Close())
	}
	return resp, keep, err
}

func (l *httpLink) tell(ctx context.Context, message []byte) error {
	return l.tellTo(ctx, l.to, message, nil)
}

func (l *httpLink) ready(ctx context.Context, message []byte) error {
	return l.tellTo(ctx, l.to, message, l.sessionHeaders)
}

func (l *httpLink) tellTo(ctx context.Context, to *url.URL, message []byte, set func(http.Header)) error {
	resp, _, err := l.do(ctx, &trip{l: l}, http.MethodPost, to, message, set)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		err = errors.New(statusText(resp.StatusCode))
	}
	return errors.Join(err, resp.Body.Close())
}

// bye ends the session on the server.
func (l *httpLink) bye() {
	if l.s.hello.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, l.to.String(), nil)
	if err != nil {
		return
	}
	req.Header.Set(wire.HeaderSession, l.s.hello.session)
	req.Header.Set(wire.HeaderVersion, l.s.hello.Version)
	if resp, err := l.withTokens(&trip{l: l}).RoundTrip(req); err == nil {
		resp.Body.Close()
	}
}

// opened listens for messages outside of requests, in the stream of a GET or of subscriptions/listen.
func (l *httpLink) opened() {
	if !l.s.modern() {
		there := make(chan struct{})
		l.streams.Go(func() { l.openStream(sync.OnceFunc(func() { close(there) })) })
		t := time.NewTimer(listenTimeout)
		defer t.Stop()
		select { // limited, because some servers send the headers only with the first message
		case <-there:
		case <-t.C:
		}
		return
	}
	l.streams.Go(func() { l.s.follow(l.ctx) })
}

// openStream reads the stream of a GET and resumes it. A server need not offer such a stream.
func (l *httpLink) openStream(there func()) {
	defer there()
	var at place
	for idle := 0; ; idle++ {
		before, began := at.last, l.now()
		resp, _, err := l.resume(l.ctx, &trip{l: l}, at.last) //nolint:bodyclose // its events close it
		there()
		if err == nil {
			_, err = l.read(events(resp.Body, l.max, nil), nil, &at, l.tell)
			resp.Body.Close()
		} else if resp != nil || idle == 0 { // the server offers no stream
			return
		} else {
			err = fmt.Errorf("%w: %w", errEnded, err) // it may be available again soon
		}
		if l.ctx.Err() != nil {
			return
		}
		if why := l.s.reason(); why != nil { // the server violated the protocol
			l.s.lose(why)
			return
		}
		if at.last != before || l.now().Sub(began) > shortListen {
			idle = 0
		}
		if !errors.Is(err, errEnded) || idle == maxResumptions {
			l.s.lose(err)
			return
		}
		if sleep(l.ctx, cmp.Or(at.wait, time.Second<<idle)) != nil {
			return
		}
	}
}

// listenTimeout is how long the start of a session waits for the stream of a GET.
const listenTimeout = 500 * time.Millisecond

// shortListen is the minimum lifetime of a stream of changes. A stream that ends sooner was not meant to
// stay open, and reopening it would never end.
const shortListen = 5 * time.Second

// neverSent reports whether a request failed before any part of it was sent.
func neverSent(err error) bool {
	var op *net.OpError
	var private *netaddr.PrivateError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &private) || errors.Is(err, errCut)
}

func mediaType(resp *http.Response) string {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

func sameOrigin(a, b *url.URL) bool {
	if a.Scheme == b.Scheme && a.Host == b.Host {
		return true
	}
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

const maxRedirects = 5

func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("a redirect leads from https to %s", req.URL.Scheme)
	}
	return nil
}

// errTooLarge ends a response beyond the size limit. The caller may see this error.
var errTooLarge = errors.New("the response is larger than allowed")

// body limits the size of a response and reports its end.
type body struct {
	io.ReadCloser
	left   int64 // 0 for no limit
	keep   func(n int) error
	finish func() // may be nil
	once   sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.keep != nil {
		if err := b.keep(n); err != nil {
			return n, err
		}
	}
	if b.left > 0 {
		if b.left -= int64(n); b.left <= 0 {
			return n, errTooLarge
		}
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	if b.finish != nil {
		b.once.Do(b.finish)
	}
	return err
}

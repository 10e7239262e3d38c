package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/internal/netaddr"
)

// httpLink is a link over HTTP: every request of a session goes through it, so
// that it can be bounded, shown to the session, and cut.
type httpLink struct {
	s     *session
	sse   bool
	base  http.RoundTripper
	to    *url.URL    // the server's address
	head  http.Header // sent to the server's own origin only
	oauth oauthHandler
	max   int // bytes of one message
	now   func() time.Time
	stale func()  // takes the session out of use once its calls have ended
	conn  *tapped // of the older transport; nil for the other

	streams sync.WaitGroup

	mu   sync.Mutex
	live map[*flight]struct{}
	late map[*flight]struct{} // those of live whose answer came
	off  bool
}

// flight is one HTTP request that runs.
type flight struct {
	cancel   context.CancelFunc
	answered time.Time // when its answer came and the rest did not matter any more
}

const sessionHeader = "Mcp-Session-Id"

// Connect makes the connection of the SDK over this link.
func (l *httpLink) Connect(ctx context.Context) (sdk.Connection, error) {
	client := &http.Client{Transport: l.withTokens(l), CheckRedirect: checkRedirect}
	if l.sse {
		c, err := (&sdk.SSEClientTransport{Endpoint: l.to.String(), HTTPClient: client, MaxEventSize: l.max}).Connect(ctx)
		if err != nil {
			return nil, err
		}
		l.conn = newTapped(c, l.s)
		return l.conn, nil
	}
	return (&sdk.StreamableClientTransport{Endpoint: l.to.String(), HTTPClient: client, MaxEventSize: l.max}).Connect(ctx)
}

func (l *httpLink) outcome(bool) error { return nil }

func (l *httpLink) end() { l.streams.Wait() }

// cut ends every request. Only the DELETE that tells the server of the end of the
// session is let through afterwards.
func (l *httpLink) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off = true
	for c := range l.live {
		c.cancel()
	}
}

var errCut = errors.New("the session is closed")

// closeTimeout bounds the request that ends a session.
const closeTimeout = 2 * time.Second

// begin makes the context of a request, which ends with the link, and with the
// caller's until release is called: once the answer is there, the rest of the response
// is read without the caller, so that the connection can be used again.
func (l *httpLink) begin(req *http.Request) (ctx context.Context, release, finish func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	if req.Method == http.MethodDelete {
		ctx, cancel = context.WithTimeout(ctx, closeTimeout)
	}
	c := &flight{cancel: cancel}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.off && req.Method != http.MethodDelete {
		cancel()
		return nil, nil, nil, errCut
	}
	l.live[c] = struct{}{}
	l.endLate()
	stop := func() bool { return true }
	if !l.sse || req.Method != http.MethodGet { // which outlives the start of the session
		stop = context.AfterFunc(req.Context(), cancel)
	}
	release = func() {
		if stop() {
			l.mu.Lock()
			defer l.mu.Unlock()
			c.answered = time.Now()
			l.late[c] = struct{}{}
		}
	}
	finish = func() {
		stop()
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.live, c)
		delete(l.late, c)
	}
	return ctx, release, finish, nil
}

// endLate ends responses that go on long after their answer. It is asked at each
// request, which costs less than a timer for each. It is called under mu.
func (l *httpLink) endLate() {
	for c := range l.late {
		if time.Since(c.answered) > closeTimeout {
			c.cancel()
			delete(l.late, c)
		}
	}
}

// mcpContent reports whether an answer with this content type may be one of MCP (specification 2025-11-25,
// Streamable HTTP, Sending Messages to the Server).
func mcpContent(kind string) bool {
	media, _, _ := mime.ParseMediaType(kind)
	return media == "application/json" || media == "text/event-stream"
}

// RoundTrip sends one request of the SDK.
func (l *httpLink) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet && !l.sse {
		return l.standing(req)
	}
	if req.Method == http.MethodPost {
		l.s.hello.begin()
	}
	resp, finish, _, err := l.roundTrip(req)
	if err != nil {
		return nil, err
	}
	l.s.hello.status.Store(int32(resp.StatusCode))
	if kind := resp.Header.Get("Content-Type"); req.Method == http.MethodPost && !l.sse && resp.StatusCode == http.StatusOK && !mcpContent(kind) {
		l.s.hello.alien.Store(&kind)
	}
	if req.Header.Get("Mcp-Method") == "subscriptions/listen" {
		finish = l.listening(resp, finish)
	}
	l.bound(req, resp, finish)
	if l.sse {
		return resp, nil
	}
	return l.show(req, resp)
}

// roundTrip sends one request. finish must be called when all of the response was read, and
// release before that once the rest of it is not for the caller any more.
func (l *httpLink) roundTrip(req *http.Request) (resp *http.Response, finish, release func(), err error) {
	own := sameOrigin(req.URL, l.to)
	if !own && req.Response == nil {
		return nil, nil, nil, fmt.Errorf("the server sends messages to another origin, %s", origin(req.URL))
	}
	ctx, release, finish, err := l.begin(req)
	if err != nil {
		return nil, nil, nil, err
	}
	if resp, err = l.base.RoundTrip(l.dressed(req, own).WithContext(ctx)); err != nil {
		finish()
		return nil, nil, nil, err
	}
	return resp, finish, release, nil
}

// dressed is the request with the headers of the manifest, which are for the server's own
// origin alone: in a redirect what proves who we are stays behind.
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
	for _, k := range []string{"Authorization", "Cookie", sessionHeader} {
		out.Header.Del(k)
	}
	for k := range l.head {
		out.Header.Del(k)
	}
	return &out
}

// bound bounds what is read of a response.
func (l *httpLink) bound(req *http.Request, resp *http.Response, finish func()) {
	whole := &body{ReadCloser: resp.Body, left: l.limit(resp), finish: finish}
	if whole.left > 0 { // it is kept as it comes; of events only one at a time is
		whole.keep = func(n int) error { return budget.Keep(req.Context(), n) }
	}
	resp.Body = whole
}

// maxErrorBody bounds the body of a response that reports an error.
const maxErrorBody = 1 << 20

// limit returns how long a body may be; 0 means that it does not end.
func (l *httpLink) limit(resp *http.Response) int64 {
	switch {
	case resp.StatusCode >= 300:
		return maxErrorBody
	case mediaType(resp) == "text/event-stream":
		return 0 // bounded event by event
	}
	return int64(l.max)
}

// show lets the session see the messages of a response before the SDK does.
func (l *httpLink) show(req *http.Request, resp *http.Response) (*http.Response, error) {
	see := func(data []byte) ([]byte, error) {
		return l.s.inspect(data, func(id, result json.RawMessage, err *jsonrpc.Error) { l.post(req, id, result, err) })
	}
	switch {
	case resp.StatusCode < 300 && mediaType(resp) == "text/event-stream":
		e := newEvents(resp.Body, l.max, see)
		e.keep = func(n int) error { return budget.Keep(req.Context(), n) }
		resp.Body = e
	case resp.StatusCode >= 300, mediaType(resp) == "application/json" && req.Method == http.MethodPost:
		data, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		if data, err = see(data); err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(data))
	}
	return resp, nil
}

// sessionGone reports whether a response says that the server does not know the
// session: 404 (MCP specification, basic/transports, session management), or the
// 400 that some servers answer, with a text that says so.
func sessionGone(status int, data []byte) bool {
	return status == http.StatusNotFound ||
		status == http.StatusBadRequest && bytes.Contains(bytes.ToLower(data), []byte("session"))
}

// neverSent reports whether a request failed before any of it was sent.
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

// errTooLarge ends a response beyond the bound, which whoever called may know.
var errTooLarge = errors.New("the response is larger than allowed")

// body bounds a response and tells of its end.
type body struct {
	io.ReadCloser
	left   int64 // 0: no bound
	keep   func(n int) error
	finish func()
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
	b.once.Do(b.finish)
	return err
}

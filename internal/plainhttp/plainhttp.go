package plainhttp

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"toolctl.dev/toolctl/internal/nonblock"
)

const (
	// maxRequest is the longest body that is sent here: a socket takes it although nobody
	// reads it, so a server that answers before it has read the request stops nobody.
	maxRequest  = 64 << 10
	maxHead     = 1 << 20 // of a response
	maxInterim  = 5       // responses of 1xx before the one that counts
	maxIdle     = 64      // connections that wait for the next request
	idleTimeout = 90 * time.Second
	restTimeout = 2 * time.Second // for the end of a response that nobody reads any more
)

// Transport is an [http.RoundTripper]. Its fields do not change once it is used.
type Transport struct {
	// Dial opens a connection, which is used once more when it is a [nonblock.TryReader].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Other sends what is not sent here.
	Other *http.Transport

	mu      sync.Mutex
	idle    []*conn // the one that waits longest first
	closing bool    // none waits until the next request
}

// RoundTrip sends a request.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !Sends(req) {
		return t.Other.RoundTrip(req)
	}
	address := req.URL.Host
	if req.URL.Port() == "" {
		address = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	if c := t.take(address); c != nil {
		resp, err := t.exchange(c, req)
		// A server may close a connection while the request is on its way to it. What
		// changes something there is not sent twice (RFC 9110, section 9.2.2).
		if err == nil || c.heard || req.Method != http.MethodGet || req.Context().Err() != nil {
			return resp, err
		}
	}
	nc, err := t.Dial(req.Context(), "tcp", address)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	return t.exchange(newConn(nc, address), req)
}

// Sends reports whether a request is sent by this package, so that a response that is closed
// before its end costs no connection.
func Sends(req *http.Request) bool {
	small := req.Body == nil || req.Body == http.NoBody || req.ContentLength > 0 && req.ContentLength <= maxRequest
	return nonblock.Known && req.URL.Scheme == "http" && req.URL.Host != "" && small &&
		req.Method != http.MethodConnect && req.Header.Get("Expect") == "" && req.Header.Get("Upgrade") == ""
}

// exchange sends a request over a connection, and reads the head of the response.
func (t *Transport) exchange(c *conn, req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	resp, err := c.exchange(req)
	if err != nil {
		stop()
		c.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c.waits = waits(resp.Header)
	empty := resp.ContentLength == 0 || req.Method == http.MethodHead
	b := &body{ReadCloser: resp.Body, conn: c, ctx: ctx, leave: func(usable bool) {
		if usable = stop() && usable && !resp.Close && !req.Close; !usable || !t.put(c) {
			c.Close()
		}
	}}
	resp.Body = b
	if c.zips && strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		resp.Body = &unzipped{ReadCloser: b}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
	if empty {
		b.end(io.EOF) // from here on the connection may be another request's
	}
	return resp, nil
}

// take returns a connection that can be used; nil when there is none. One on which the end
// of the last response has not come yet waits on.
func (t *Transport) take(address string) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = false
	for i := len(t.idle) - 1; i >= 0; i-- {
		c := t.idle[i]
		if c.address != address {
			continue
		}
		state := c.state()
		if state == pending {
			continue
		}
		t.idle = slices.Delete(t.idle, i, i+1)
		switch {
		case !c.unused.Stop(): // it is being closed
		case state == ready:
			return c
		default:
			c.Close()
		}
	}
	return nil
}

// put keeps a connection for the next request, if there is room.
func (t *Transport) put(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing || len(t.idle) >= maxIdle {
		return false
	}
	t.idle = append(t.idle, c)
	wait := c.waits
	if c.rest != nil {
		wait = min(wait, restTimeout)
	}
	if c.unused == nil {
		c.unused = time.AfterFunc(wait, func() { t.drop(c) })
	} else {
		c.unused.Reset(wait)
	}
	return true
}

// waits is how long a connection may wait for the next request: less than its server says that
// it waits (RFC 2068, section 19.7.1.1; Node says 5 s), which might else close it with a request on its way.
func waits(h http.Header) time.Duration {
	for field := range strings.SplitSeq(h.Get("Keep-Alive"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		if n, err := strconv.ParseUint(value, 10, 16); err == nil && strings.EqualFold(name, "timeout") {
			return min(idleTimeout, time.Duration(n)*time.Second*4/5)
		}
	}
	return idleTimeout
}

// drop closes a connection that waited too long, or whose last response goes on although
// nobody reads it.
func (t *Transport) drop(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.idle, c); i >= 0 {
		if c.rest != nil && c.state() == ready {
			c.unused.Reset(c.waits)
			return
		}
		t.idle = slices.Delete(t.idle, i, i+1)
	}
	c.Close()
}

// CloseIdleConnections closes the connections that wait, and those that would before there is
// another request.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	for _, c := range t.idle {
		if c.unused.Stop() {
			c.Close()
		}
	}
	t.idle, t.closing = nil, true
	t.mu.Unlock()
	t.Other.CloseIdleConnections()
}

package mcp

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"time"
)

// shortListen is how long a stream of changes lives at least. What ends sooner was
// never meant to stay, and opening it again would go on for ever.
const shortListen = 5 * time.Second

// listening watches over the stream on which a server without sessions tells of
// changes (subscriptions/listen, MCP 2026-07-28). The SDK does not open it again, so
// its end is the end of the session.
func (l *httpLink) listening(resp *http.Response, finish func()) func() {
	if resp.StatusCode >= 300 || mediaType(resp) != "text/event-stream" {
		return finish
	}
	began := l.now()
	return func() {
		finish()
		l.mu.Lock()
		off := l.off
		l.mu.Unlock()
		if !off && l.now().Sub(began) > shortListen {
			l.stale()
		}
	}
}

// noStream is the answer of a server that offers no standing stream (MCP
// specification, basic/transports, listening for messages).
func noStream(req *http.Request) *http.Response {
	return &http.Response{StatusCode: http.StatusMethodNotAllowed, Header: http.Header{}, Body: http.NoBody, Request: req}
}

// standingWait is how long the start of a session waits for the standing stream.
const standingWait = 500 * time.Millisecond

// standing opens the stream for what the server says unasked. The SDK starts no
// session before the stream's headers came, and some servers send them with the
// first message; so after a moment the stream counts as open and stays silent.
func (l *httpLink) standing(req *http.Request) (*http.Response, error) {
	own := sameOrigin(req.URL, l.to)
	if !own && req.Response == nil {
		return nil, fmt.Errorf("the server sends messages to another origin, %s", origin(req.URL))
	}
	ctx, _, finish, err := l.begin(req)
	if err != nil { // the SDK would try again and again
		return noStream(req), nil
	}
	out := l.dressed(req, own).WithContext(ctx)
	type outcome struct {
		resp *http.Response
		err  error
	}
	came := make(chan outcome, 1)
	l.streams.Go(func() {
		resp, err := l.base.RoundTrip(out) //nolint:bodyclose // whoever receives it from came closes it
		came <- outcome{resp, err}
	})
	show := func(resp *http.Response, finish func()) (*http.Response, error) {
		resp.Body = &body{ReadCloser: resp.Body, left: l.limit(resp), finish: finish}
		return l.show(req, resp)
	}
	t := time.NewTimer(standingWait)
	defer t.Stop()
	select {
	case o := <-came:
		if o.err != nil {
			finish()
			return nil, o.err
		}
		return show(o.resp, finish)
	case <-t.C:
	}
	r, w := io.Pipe()
	l.streams.Go(func() {
		defer finish()
		o := <-came
		if o.err == nil {
			var resp *http.Response
			if resp, o.err = show(o.resp, func() {}); o.err == nil {
				if resp.StatusCode < 300 && mediaType(resp) == "text/event-stream" {
					_, o.err = io.Copy(w, resp.Body)
				} else {
					<-out.Context().Done() // no stream: silence until the session ends
				}
				resp.Body.Close()
			}
		}
		w.CloseWithError(cmp.Or(o.err, io.EOF))
	})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: &body{ReadCloser: r, finish: finish}, Request: req}, nil
}

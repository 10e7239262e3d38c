package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// sseLink is a link over HTTP+SSE, the transport of 2024-11-05. All messages of the server come in the
// stream of one GET, whose first event is the address to which requests are posted.
type sseLink struct {
	*httpLink
	post  *url.URL   // where to post requests; set before found has a value
	found chan error // receives the error, or nil once there is an address
}

func (l *sseLink) begin() {
	l.httpLink.begin()
	l.found = make(chan error, 1)
	l.streams.Go(l.hear)
}

func (l *sseLink) opened() {}
func (l *sseLink) bye()    {}

// hear reads the stream until its end, which also ends the session.
func (l *sseLink) hear() {
	t := &trip{l: l.httpLink}
	resp, _, err := l.do(l.ctx, t, http.MethodGet, l.to, nil, nil)
	if err == nil && (resp.StatusCode >= 300 || mediaType(resp) != "text/event-stream") {
		err = errors.Join(errors.New(statusText(resp.StatusCode)), resp.Body.Close())
	}
	if err != nil {
		l.found <- err
		l.s.lose(err)
		return
	}
	defer resp.Body.Close()
	e := events(resp.Body, l.max, nil)
	ev, err := e.Next()
	if err == nil {
		var to *url.URL
		if to, err = l.to.Parse(string(ev.Data)); err == nil && !sameOrigin(to, l.to) {
			err = fmt.Errorf("the server sends messages to another origin, %s", origin(to))
		}
		if err == nil {
			l.post = to
		}
	}
	l.found <- err
	if err == nil {
		var at place
		_, err = l.read(e, nil, &at, l.tell)
	}
	if l.ctx.Err() != nil || err == errEnded { //nolint:errorlint // a connection that broke is another error
		err = nil
	}
	l.s.lose(err)
}

func (l *sseLink) send(ctx context.Context, x *exchange) (got receipt, err error) {
	select {
	case err := <-l.found:
		if l.found <- err; err != nil {
			return got, err
		}
	case <-ctx.Done():
		return got, ctx.Err()
	}
	message, err := x.text()
	if err != nil {
		return got, err
	}
	got.reached = true
	got.answer, err = l.s.await(ctx, x, func() error { return l.tell(ctx, message) }, l.tell)
	return got, err
}

// tell posts a message to the address that the server gave.
func (l *sseLink) tell(ctx context.Context, message []byte) error {
	return l.tellTo(ctx, l.post, message, nil)
}

func (l *sseLink) ready(ctx context.Context, message []byte) error { return l.tell(ctx, message) }

package mcp

import (
	"context"
	"time"

	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// A server of 2026-07-28 sends messages outside of requests in the stream of a long request,
// subscriptions/listen. There is one such request for its lists, and one for each subscribed resource.

// follow keeps the stream for changes of lists open until ctx ends. If the server ends the stream, the
// session ends, because changes since then are unknown.
func (s *session) follow(ctx context.Context) {
	can, want := s.hello.can(), map[string]any{}
	for name, c := range map[string]*changes{"toolsListChanged": can.Tools, "promptsListChanged": can.Prompts, "resourcesListChanged": can.Resources} {
		if c != nil && c.ListChanged {
			want[name] = true
		}
	}
	if len(want) == 0 {
		return
	}
	began := s.upstream.owner.opts.Now()
	_ = s.subscriptions(ctx, want, nil)
	if ctx.Err() == nil && s.upstream.owner.opts.Now().Sub(began) > shortListen {
		s.upstream.drop(s, errUnused)
	}
}

// subscriptions opens one stream and reads it to its end. acknowledged is called once the server has
// accepted the subscription; it may be nil.
func (s *session) subscriptions(ctx context.Context, want map[string]any, acknowledged func()) error {
	x := &exchange{id: s.calls.NewID(), method: "subscriptions/listen", params: []param{{"notifications", want}}, acknowledged: acknowledged}
	x.meta = s.meta(ctx, x)
	defer s.expect(x)()
	got, err := s.link.send(ctx, x)
	if err == nil && got.answer.Error != nil {
		err = s.upstream.refused(s, got.answer.Failure())
	}
	return err
}

// listenTo opens a stream for the changes of one resource.
func (s *session) listenTo(ctx context.Context, uri string) error {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	if s.listen == nil {
		s.listen = map[string]context.CancelFunc{}
	}
	if s.listen[uri] != nil || s.off {
		s.mu.Unlock()
		cancel()
		return nil
	}
	s.listen[uri] = cancel
	s.mu.Unlock()
	agreed, ended := make(chan struct{}), make(chan error, 1)
	s.aside(func() {
		defer s.unlisten(uri)
		ended <- s.subscriptions(within, map[string]any{"resourceSubscriptions": []string{uri}}, func() { close(agreed) })
	})
	t := time.NewTimer(s.upstream.timeout())
	defer t.Stop()
	select {
	case <-agreed:
		return nil
	case err := <-ended:
		return err
	case <-t.C:
		cancel()
		return context.DeadlineExceeded
	case <-ctx.Done():
		cancel()
		return ctx.Err()
	}
}

// unlisten ends a stream opened by listenTo.
func (s *session) unlisten(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.listen[uri]; cancel != nil {
		cancel()
		delete(s.listen, uri)
	}
}

// subscription returns the stream that a notification belongs to.
func (s *session) subscription(m wire.Message, x *exchange) *exchange {
	if x != nil {
		return x
	}
	id, _ := m.Meta.Text(wire.MetaSubscription)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exchanges[id]
}

package mcp

import (
	"context"
	"time"

	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// What a server of 2026-07-28 says unasked it says in the stream of a request, subscriptions/listen, which lasts. One is
// for its lists, and one for each resource that is subscribed to.

// follow keeps the stream of changes of lists open, until ctx ends. One that a server ends is the end of the session: what
// changed meanwhile is not known.
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

// subscriptions is one stream. acknowledged is called once the server has agreed; nil for nobody.
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

// unlisten ends a stream of listenTo.
func (s *session) unlisten(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.listen[uri]; cancel != nil {
		cancel()
		delete(s.listen, uri)
	}
}

// subscription is the stream that a notification belongs to.
func (s *session) subscription(m wire.Message, x *exchange) *exchange {
	if x != nil {
		return x
	}
	id, _ := m.Meta.Text(wire.MetaSubscription)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exchanges[id]
}

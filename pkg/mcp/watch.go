package mcp

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// maxWatched limits our subscriptions at one server.
const maxWatched = 10_000

// Subscribe subscribes to the changes of a resource, which the server reports to Options.OnUpdate. The
// server gets one subscription, however often Subscribe is called, and again in each new session.
// [Upstreams.Unsubscribe] must be called equally often. The error is that of [Upstreams.ReadResource].
func (u *Upstreams) Subscribe(ctx context.Context, server v1.Key, uri string) error {
	up, err := u.get(server)
	if err != nil {
		return err
	}
	up.mu.Lock()
	if up.watched[uri] == 0 && len(up.watched) >= maxWatched {
		up.mu.Unlock()
		return up.unavailable("more than %d subscriptions to resources", maxWatched)
	}
	up.watched[uri]++
	first := up.watched[uri] == 1
	up.mu.Unlock()
	if !first {
		return nil
	}
	if err := up.subscribe(ctx, uri); err != nil {
		up.unwatch(uri)
		return err
	}
	return nil
}

// Unsubscribe undoes one [Upstreams.Subscribe]. The server is notified after the last one.
func (u *Upstreams) Unsubscribe(ctx context.Context, server v1.Key, uri string) error {
	up, err := u.get(server)
	if err != nil {
		return err
	}
	if !up.unwatch(uri) {
		return nil
	}
	s, err := up.acquire(ctx, &up.shared)
	if err != nil {
		return err
	}
	defer up.release(s)
	if s.modern() {
		s.unlisten(uri)
		return nil
	}
	_, _, err = up.do(withoutPeer(ctx), request{method: "resources/unsubscribe", params: []param{{"uri", uri}}, limit: up.timeout(), retry: true})
	return err
}

// withoutPeer returns a context for a request in the shared session.
func withoutPeer(ctx context.Context) context.Context { return WithPeer(ctx, nil) }

// unwatch removes one subscription; true if it was the last.
func (u *upstream) unwatch(uri string) (last bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.watched[uri]--; u.watched[uri] > 0 {
		return false
	}
	_, last = u.watched[uri]
	delete(u.watched, uri)
	delete(u.updated, uri)
	return last
}

// subscribe subscribes at the server, over the shared session.
func (u *upstream) subscribe(ctx context.Context, uri string) error {
	s, err := u.acquire(ctx, &u.shared)
	if err != nil {
		return err
	}
	defer u.release(s)
	if can := s.hello.can().Resources; can == nil || !can.Subscribe {
		return &v1.MCPError{Server: u.key.Name, Code: -32601, Message: "the server does not support subscriptions to resources"}
	}
	if s.modern() { // needs a stream of its own
		return s.listenTo(ctx, uri)
	}
	_, _, err = u.do(withoutPeer(ctx), request{method: "resources/subscribe", params: []param{{"uri", uri}}, limit: u.timeout(), retry: true})
	return err
}

// watchAgain renews the subscriptions in a new session. Changes in between are unknown, so all subscribed
// resources count as changed.
func (u *upstream) watchAgain(s *session) {
	u.mu.Lock()
	uris := slices.Sorted(maps.Keys(u.watched))
	u.mu.Unlock()
	for _, uri := range uris {
		if s.ended() {
			return
		}
		if err := u.subscribe(u.life, uri); err != nil {
			u.log.Warn("cannot subscribe to a resource again", slog.String("uri", clip.Bytes(uri, 200)), slog.Any("error", err))
			continue
		}
		u.resourceUpdated(uri)
	}
}

// resourceUpdated reports a change in its own goroutine, because a slow receiver must not delay the
// server's other messages. It combines changes that arrive before the report.
func (u *upstream) resourceUpdated(uri string) {
	tell := u.owner.opts.OnUpdate
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tellRelays(uri, "notifications/resources/updated", map[string]string{"uri": uri})
	if tell == nil || u.ended || u.watched[uri] == 0 {
		return
	}
	u.updated[uri] = true
	if u.updating {
		return
	}
	u.updating = true
	u.running.Go(func() {
		for {
			u.mu.Lock()
			if len(u.updated) == 0 || u.ended {
				u.updating = false
				u.mu.Unlock()
				return
			}
			uris := slices.Sorted(maps.Keys(u.updated))
			clear(u.updated)
			u.mu.Unlock()
			for _, uri := range uris {
				u.tell(func() { tell(u.key, uri) })
			}
		}
	})
}

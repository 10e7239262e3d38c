package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

const (
	// maxWatched limits the subscriptions of one session.
	maxWatched = 1000
	// unwatchTimeout is how long a server may take to accept an unsubscribe request.
	unwatchTimeout = 5 * time.Second
	// settling is the period in which changes are combined into one notification.
	settling = 10 * time.Millisecond
)

// listeners holds the streams of subscriptions/listen, and the pending notifications.
type listeners struct {
	mu   sync.Mutex
	all  map[*listener]bool
	soon map[[2]string]*time.Timer // by toolset and list
}

// listener is one stream of subscriptions/listen.
type listener struct {
	id    json.RawMessage
	mu    sync.Mutex // held while a message is sent; the acknowledgement comes first
	to    channel
	lists map[string]bool // "tools", "prompts", "resources"
	uris  map[string]v1.Key

	toolset string
}

// ListChanged notifies clients that a list of an MCP server may have changed: "tools", "prompts" or "resources". A
// server may report changes that its list does not show.
func (s *Server) ListChanged(server v1.Key, list string) {
	for toolset, o := range s.set.Load().toolsets {
		if o.servers == nil || o.servers[server] {
			s.listChanged(toolset, list)
		}
	}
}

// listChanged notifies the clients of a toolset that a list may have changed. Changes in quick succession are
// combined.
func (s *Server) listChanged(toolset, list string) {
	l, key := &s.listeners, [2]string{toolset, list}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.soon == nil {
		l.soon = map[[2]string]*time.Timer{}
	}
	if t := l.soon[key]; t != nil {
		t.Reset(settling)
		return
	}
	l.soon[key] = time.AfterFunc(settling, func() {
		l.mu.Lock()
		delete(l.soon, key)
		l.mu.Unlock()
		s.announce("notifications/"+list+"/list_changed", nil, func(n *session) bool { return n.toolset == toolset }, func(k *listener) bool { return k.toolset == toolset && k.lists[list] })
	})
}

// ResourceUpdated notifies the subscribed clients that a resource has changed.
func (s *Server) ResourceUpdated(uri string) {
	in := func(toolset string) bool { // still
		o := s.offers(toolset)
		_, ok := o.library.server(uri)
		return ok || o.servers == nil
	}
	s.announce("notifications/resources/updated", map[string]any{"uri": uri}, func(n *session) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		_, ok := n.watched[uri]
		return ok && in(n.toolset)
	}, func(k *listener) bool { _, ok := k.uris[uri]; return ok && in(k.toolset) })
}

// announce sends a notification to all sessions and streams that want it.
func (s *Server) announce(method string, params map[string]any, inSession func(*session) bool, inStream func(*listener) bool) {
	var body any // stays nil without parameters
	if params != nil {
		body = params
	}
	text, err := wire.Request("", method, body)
	if err != nil {
		return
	}
	text = slices.Clip(text) // several sessions append a line end concurrently
	s.sessions.mu.Lock()
	all := slices.Collect(maps.Keys(s.sessions.all))
	s.sessions.mu.Unlock()
	for _, n := range all {
		if inSession(n) {
			n.say(text)
		}
	}
	s.listeners.mu.Lock()
	streams := slices.Collect(maps.Keys(s.listeners.all))
	s.listeners.mu.Unlock()
	for _, k := range streams {
		if inStream(k) {
			p := maps.Clone(params)
			if p == nil {
				p = map[string]any{}
			}
			p["_meta"] = k.meta()
			_ = k.tell(method, p) // the client may have gone
		}
	}
}

func (k *listener) tell(method string, params any) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.to.notify(method, params)
}

// meta returns the _meta that assigns a notification to its request.
func (k *listener) meta() map[string]any { return map[string]any{wire.MetaSubscription: k.id} }

// listen answers subscriptions/listen (MCP 2026-07-28), which stays open until its client or the server
// ends it.
func (s *Server) listen(ctx context.Context, r *request) (answer, error) {
	var want struct {
		Tools     bool     `json:"toolsListChanged,omitempty"`
		Prompts   bool     `json:"promptsListChanged,omitempty"`
		Resources bool     `json:"resourcesListChanged,omitempty"`
		URIs      []string `json:"resourceSubscriptions,omitempty"`
	}
	if r.Params.Get("notifications") == nil {
		return nil, invalidParams("notifications: expected an object")
	}
	if err := r.read("notifications", &want); err != nil {
		return nil, err
	}
	if len(want.URIs) > maxWatched {
		return nil, &jsonrpc.Error{Code: codeUnavailable, Message: "too many subscriptions in one stream"}
	}
	k := &listener{id: r.ID, to: r.to, toolset: r.toolset, lists: map[string]bool{"tools": want.Tools, "prompts": want.Prompts, "resources": want.Resources}, uris: map[string]v1.Key{}}
	defer func() {
		s.listeners.mu.Lock()
		delete(s.listeners.all, k)
		s.listeners.mu.Unlock()
		for uri, server := range k.uris {
			s.unwatch(server, uri)
		}
	}()
	for _, uri := range want.URIs {
		if _, twice := k.uris[uri]; twice {
			continue
		}
		server, err := s.watch(ctx, r, uri)
		if err != nil {
			return nil, err
		}
		if server != (v1.Key{}) {
			k.uris[uri] = server
		}
	}
	k.mu.Lock() // until the client has the acknowledgement, so that it misses nothing
	s.listeners.mu.Lock()
	if s.listeners.all == nil {
		s.listeners.all = map[*listener]bool{}
	}
	s.listeners.all[k] = true
	s.listeners.mu.Unlock()
	err := r.to.notify("notifications/subscriptions/acknowledged", map[string]any{"_meta": k.meta(), "notifications": want})
	k.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if want.Tools || want.Prompts || want.Resources || len(want.URIs) > 0 {
		select {
		case <-ctx.Done():
		case <-s.calls.Refused():
		}
	}
	return &base{Meta: k.meta()}, nil
}

// watch subscribes to a resource at its server. It returns the zero key if no server reports its changes
// and the client needs no error.
func (s *Server) watch(ctx context.Context, r *request, uri string) (v1.Key, error) {
	version := r.version
	server, ok := s.serverOf(ctx, r.toolset, uri)
	if !ok {
		return v1.Key{}, noResource(uri, version)
	}
	if server.Kind != v1.KindMCPServer { // a file declared by a manifest
		return v1.Key{}, s.noUpdates(uri, version)
	}
	if err := s.catalog.Subscribe(ctx, server, uri); err != nil {
		var upstream *v1.MCPError
		if errors.As(err, &upstream) && upstream.Code == jsonrpc.CodeMethodNotFound {
			return v1.Key{}, s.noUpdates(uri, version)
		}
		return v1.Key{}, relayed(err)
	}
	return server, nil
}

// subscribe answers resources/subscribe.
func (s *Server) subscribe(ctx context.Context, r *request) (answer, error) {
	uri, err := r.text("uri")
	if err != nil {
		return nil, err
	}
	n := r.session
	n.mu.Lock()
	_, twice := n.watched[uri]
	full := len(n.watched) >= maxWatched
	n.mu.Unlock()
	switch {
	case twice:
		return &base{}, nil
	case full:
		return nil, &jsonrpc.Error{Code: codeUnavailable, Message: "too many subscriptions in one session"}
	}
	server, err := s.watch(ctx, r, uri)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	_, twice = n.watched[uri]
	keep := !n.ended && !twice
	if keep {
		n.watched[uri] = server
	}
	n.mu.Unlock()
	if !keep { // the session has ended, or a concurrent request subscribed first
		s.unwatch(server, uri)
	}
	return &base{}, nil
}

// noUpdates answers a subscription to a resource without change notifications. A modern client gets no
// error, because one such address must not end its stream for all others.
func (s *Server) noUpdates(uri, version string) error {
	if wire.IsModern(version) {
		s.opts.Logger.Debug("client subscribed to a resource without update notifications", slog.String("uri", clip.Bytes(uri, 100)))
		return nil
	}
	return invalidParams(fmt.Sprintf("resource %q has no update notifications", clip.Bytes(uri, 100)))
}

// unsubscribe answers resources/unsubscribe.
func (s *Server) unsubscribe(_ context.Context, r *request) (answer, error) {
	uri, err := r.text("uri")
	if err != nil {
		return nil, err
	}
	r.session.mu.Lock()
	server, ok := r.session.watched[uri]
	delete(r.session.watched, uri)
	r.session.mu.Unlock()
	if ok {
		s.unwatch(server, uri)
	}
	return &base{}, nil
}

// unwatch unsubscribes at a server, without reporting an error to the client.
func (s *Server) unwatch(server v1.Key, uri string) {
	ctx, cancel := context.WithTimeout(context.Background(), unwatchTimeout)
	defer cancel()
	if err := s.catalog.Unsubscribe(ctx, server, uri); err != nil {
		s.opts.Logger.Debug("a server could not be told that a subscription ended", slog.String("server", server.Name), slog.Any("error", err))
	}
}

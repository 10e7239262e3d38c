package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/admission"
)

// follower is what is kept for one session of a client until it ends.
type follower struct {
	key  string        // of the client, for its servers
	gone chan struct{} // closed when the end of the session has been seen to

	tasks   sync.WaitGroup // what goes on in the background
	mu      sync.Mutex
	ended   bool
	level   string            // of the log messages that the client wants
	watched map[string]v1.Key // the servers of the resources that it subscribed to
}

// followers are those of all sessions.
type followers struct {
	mu      sync.Mutex
	set     map[*sdk.ServerSession]*follower
	closing bool
	running sync.WaitGroup
}

// follow returns what is kept for a session, from now to its end; nil once the server
// has stopped.
func (s *Server) follow(ss *sdk.ServerSession) *follower {
	s.followers.mu.Lock()
	defer s.followers.mu.Unlock()
	if f := s.followers.set[ss]; f != nil {
		return f
	}
	if s.followers.closing {
		return nil
	}
	name := ss.ID()
	if name == "" { // no HTTP: the process serves one client
		name = s.run
	}
	f := &follower{key: "session-" + hash(name), gone: make(chan struct{}), watched: map[string]v1.Key{}}
	if s.followers.set == nil {
		s.followers.set = map[*sdk.ServerSession]*follower{}
	}
	s.followers.set[ss] = f
	s.followers.running.Go(func() {
		_ = ss.Wait() // why it ended is the client's business
		s.unfollow(ss, f)
	})
	return f
}

// unfollow ends what servers do for a session that has ended.
func (s *Server) unfollow(ss *sdk.ServerSession, f *follower) {
	defer func() {
		s.followers.mu.Lock()
		delete(s.followers.set, ss)
		s.followers.mu.Unlock()
		close(f.gone)
	}()
	f.mu.Lock()
	f.ended = true
	watched := f.watched
	f.watched = nil
	f.mu.Unlock()
	f.tasks.Wait()
	for uri, server := range watched {
		s.unwatch(server, uri)
	}
	s.catalog.EndPeer(f.key)
}

// waitFollowers returns when the ends of all sessions have been seen to. The sessions
// must be closed.
func (s *Server) waitFollowers() {
	s.followers.mu.Lock()
	s.followers.closing = true
	s.followers.mu.Unlock()
	s.followers.running.Wait()
}

// waitFollower returns when the end of a session has been seen to, which must be closed.
func (s *Server) waitFollower(ss *sdk.ServerSession) {
	s.followers.mu.Lock()
	f := s.followers.set[ss]
	s.followers.mu.Unlock()
	if f != nil {
		<-f.gone
	}
}

func (f *follower) logLevel() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.level
}

// wantsLogs reports whether a client said which log messages it wants.
func (s *Server) wantsLogs(ss *sdk.ServerSession) bool {
	s.followers.mu.Lock()
	f := s.followers.set[ss]
	s.followers.mu.Unlock()
	return f != nil && f.logLevel() != ""
}

// setLevel answers logging/setLevel (MCP specification, server/utilities/logging).
func (s *Server) setLevel(ctx context.Context, req *sdk.ServerRequest[*sdk.SetLoggingLevelParams], next func() (sdk.Result, error)) (sdk.Result, error) {
	level := string(req.Params.Level)
	if !isLevel(level) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "level: expected debug, info, notice, warning, error, critical, alert or emergency, got " + clip.Bytes(level, 100)}
	}
	res, err := next()
	if err != nil {
		return nil, err
	}
	if f := s.follow(req.Session); f != nil {
		f.mu.Lock()
		f.level = level
		f.mu.Unlock()
		s.catalog.SetLogLevel(f.key, level)
	}
	return res, ctx.Err()
}

// rootsChanged passes notifications/roots/list_changed on.
func (s *Server) rootsChanged(_ context.Context, req *sdk.RootsListChangedRequest) {
	f := s.follow(req.Session)
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended { // the client's next message does not wait for its servers
		f.tasks.Go(func() { s.catalog.RootsChanged(f.key) })
	}
}

const (
	// maxWatched bounds the subscriptions of one session.
	maxWatched = 1000
	// unwatchTimeout is how long a server may take to hear that nobody listens any more.
	unwatchTimeout = 5 * time.Second
)

// subscribe asks the server of a resource to say when it changes, for resources/subscribe
// and for the addresses of subscriptions/listen.
func (s *Server) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	uri := req.Params.URI
	server, ok := s.set.Load().library.server(uri)
	if !ok {
		s.catalog.Settle(ctx, "")
		server, ok = s.set.Load().library.server(uri)
	}
	if !ok {
		return noResource(uri, req.ProtocolVersion())
	}
	if server.Kind != v1.KindMCPServer { // a file that a manifest declares
		return s.noUpdates(uri, req.ProtocolVersion())
	}
	f := s.follow(req.Session)
	if f == nil {
		return &jsonrpc.Error{Code: codeUnavailable, Message: admission.ErrStopping.Error()}
	}
	f.mu.Lock()
	_, twice := f.watched[uri]
	full := len(f.watched) >= maxWatched
	f.mu.Unlock()
	switch {
	case twice:
		return nil
	case full:
		return &jsonrpc.Error{Code: codeUnavailable, Message: "too many subscriptions in one session"}
	}
	if err := s.catalog.Subscribe(ctx, server, uri); err != nil {
		var upstream *v1.MCPError
		if errors.As(err, &upstream) && upstream.Code == jsonrpc.CodeMethodNotFound {
			return s.noUpdates(uri, req.ProtocolVersion())
		}
		return relayed(err)
	}
	f.mu.Lock()
	_, twice = f.watched[uri]
	keep := !f.ended && !twice
	if keep {
		f.watched[uri] = server
	}
	f.mu.Unlock()
	if !keep { // the session ended meanwhile, or asked twice at once
		s.unwatch(server, uri)
	}
	return nil
}

// noUpdates answers a subscription to a resource whose changes nobody tells. One address
// of many must not end a client's stream of everything else.
func (s *Server) noUpdates(uri, version string) error {
	if isModern(version) {
		s.opts.Logger.Debug("a resource is subscribed to whose changes are not told", slog.String("uri", clip.Bytes(uri, 100)))
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("resource %q: its changes are not told", clip.Bytes(uri, 100))}
}

// unsubscribe takes a subscription back.
func (s *Server) unsubscribe(_ context.Context, req *sdk.UnsubscribeRequest) error {
	f := s.follow(req.Session)
	if f == nil {
		return nil
	}
	f.mu.Lock()
	server, ok := f.watched[req.Params.URI]
	delete(f.watched, req.Params.URI)
	f.mu.Unlock()
	if ok {
		s.unwatch(server, req.Params.URI)
	}
	return nil
}

// unwatch tells a server; its client is gone or does not care.
func (s *Server) unwatch(server v1.Key, uri string) {
	ctx, cancel := context.WithTimeout(context.Background(), unwatchTimeout)
	defer cancel()
	if err := s.catalog.Unsubscribe(ctx, server, uri); err != nil {
		s.opts.Logger.Debug("a server was not told that a subscription ended", slog.String("server", server.Name), slog.Any("error", err))
	}
}

// ResourceUpdated tells the clients that subscribed to a resource that it changed.
func (s *Server) ResourceUpdated(uri string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := s.sdk.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
		s.opts.Logger.Debug("clients were not told of a change", slog.String("uri", clip.Bytes(uri, 100)), slog.Any("error", err))
	}
}

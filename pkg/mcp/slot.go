package mcp

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// slot is the place for one session with a server: the shared session, or the session of a client. The
// session may be lost and reopened. Fields without another rule are guarded by the mutex of the upstream.
type slot struct {
	// Fixed.
	key     ownerKey
	version string // of MCP; empty for the latest

	current    *session
	opening    *opening
	failures   int       // in a row
	retryAfter time.Time // earliest time to open a session again
	lastErr    error     // why there is no session
	died       bool      // the session ended after it was open

	leases int
	used   time.Time
	idle   *time.Timer // ends an unused session; nil if the session ends with its client
	gone   bool        // allows no more leases

	mu       sync.Mutex
	requests []*clientRequest // running requests, the latest last
	last     *Peer            // the client, for slots that are not shared
}

// ownerKey identifies the owner of a session. It is zero for the shared session.
type ownerKey struct {
	key    string
	modern bool
	can    Capabilities
}

// opening is a session that is being opened. All callers that need the session wait for done.
type opening struct {
	done chan struct{}
	err  error
}

const (
	// defaultPeerSessions is the default for the maximum number of client sessions of a server.
	defaultPeerSessions = 64
	// peerIdle is how long a session waits for the next call of a client that has no session of its own.
	peerIdle = 2 * time.Minute
)

// session returns a session for a request made with ctx, and a function that releases it.
func (u *upstream) session(ctx context.Context) (*session, *clientRequest, func(), error) {
	p := PeerOf(ctx)
	if !p.wants() {
		s, err := u.acquire(ctx, &u.shared)
		return s, nil, func() { u.release(s) }, err
	}
	r := &clientRequest{ctx: ctx, peer: p}
	if u.spec.Spec.Replicas == v1.ReplicasOne { // shared by all clients, so only a request identifies its client
		s, err := u.acquire(ctx, &u.shared)
		if err == nil && !s.modern() && !s.remote {
			r = nil
		}
		return s, r, func() { u.release(s) }, err
	}
	if p.Modern {
		s, err := u.acquire(ctx, &u.shared)
		if err != nil {
			return nil, nil, nil, err
		}
		// In this protocol version, messages of a server belong to a request, except for log messages on a stream
		// that all requests share.
		if s.modern() && (p.LogLevel == "" || s.separate()) {
			return s, r, func() { u.release(s) }, nil
		}
		u.release(s)
	}
	sl, err := u.lease(r)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := u.acquire(ctx, sl)
	if err != nil {
		u.unlease(sl, r)
		return nil, nil, nil, err
	}
	s.setLevel(ctx, p.LogLevel)
	return s, r, func() { u.release(s); u.unlease(sl, r) }, nil
}

// lease takes a slot for a request of a client. A client gets a slot of its own if it has no session for
// messages of several calls.
func (u *upstream) lease(r *clientRequest) (*slot, error) {
	k := ownerKey{key: r.peer.Key, modern: r.peer.Modern, can: r.peer.Can}
	u.mu.Lock()
	defer u.mu.Unlock()
	sl := u.slotFor(k)
	for ; sl == nil; sl = u.slotFor(k) { // all slots are in use: wait for the next free one
		free := u.free
		u.mu.Unlock()
		select {
		case <-free:
		case <-u.life.Done():
		case <-r.ctx.Done():
		}
		u.mu.Lock()
		switch {
		case r.ctx.Err() != nil:
			return nil, u.unavailable("all %d sessions that clients may have with it are in use: call again later", u.owner.opts.MaxPeerSessions)
		case u.closed:
			return nil, u.unavailable("the server is no longer in use")
		}
	}
	sl.leases++
	if sl.idle != nil {
		sl.idle.Stop()
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.last = r.peer
	sl.requests = append(sl.requests, r)
	return sl, nil
}

// slotFor returns a slot for a client: an existing one, or a new one if the client cannot use its existing
// slots. It returns nil if no more are allowed now. It is called under mu.
func (u *upstream) slotFor(k ownerKey) *slot {
	for _, have := range u.peers[k] {
		if !k.modern || have.leases == 0 {
			return have
		}
	}
	if !u.makeRoom() {
		return nil
	}
	sl := &slot{key: k}
	if !k.modern { // so that a server of both protocol versions behaves as before for older clients
		sl.version = legacyVersion
	}
	u.peers[k] = append(u.peers[k], sl)
	return sl
}

// unlease returns a slot.
func (u *upstream) unlease(sl *slot, r *clientRequest) {
	sl.mu.Lock()
	sl.requests = slices.DeleteFunc(sl.requests, func(o *clientRequest) bool { return o == r })
	sl.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	sl.leases--
	sl.used = u.owner.opts.Now()
	if sl.leases == 0 {
		u.freed()
	}
	switch {
	case sl.leases > 0 || sl.gone:
	case sl.current == nil && sl.opening == nil && sl.lastErr == nil:
		u.vacate(sl)
	case sl.key.modern && !u.ended:
		sl.idle = time.AfterFunc(peerIdle, func() {
			u.mu.Lock()
			defer u.mu.Unlock()
			if sl.leases == 0 {
				u.vacate(sl)
			}
		})
	}
}

// makeRoom ends the least recently used session if the maximum is reached. It returns false if all sessions
// are in use. It is called under mu.
func (u *upstream) makeRoom() bool {
	n := 0
	var oldest *slot
	for _, all := range u.peers {
		n += len(all)
		for _, sl := range all {
			if sl.leases == 0 && (oldest == nil || sl.used.Before(oldest.used)) {
				oldest = sl
			}
		}
	}
	switch {
	case n < u.owner.opts.MaxPeerSessions:
	case oldest == nil:
		return false
	default:
		u.vacate(oldest)
	}
	return true
}

// freed notifies callers that wait for a slot. It is called under mu.
func (u *upstream) freed() {
	close(u.free)
	u.free = make(chan struct{})
}

// vacate takes a slot out of use and ends its session. It is called under mu.
func (u *upstream) vacate(sl *slot) {
	sl.gone = true
	u.freed()
	if sl.idle != nil {
		sl.idle.Stop()
	}
	rest := slices.DeleteFunc(u.peers[sl.key], func(o *slot) bool { return o == sl })
	if u.peers[sl.key] = rest; len(rest) == 0 {
		delete(u.peers, sl.key)
	}
	if sl.current != nil {
		u.retire(sl.current)
	}
}

// slotsOf calls f with each slot of a client, under mu.
func (u *upstream) slotsOf(key string, f func(*slot)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for k, all := range u.peers {
		if k.key == key {
			for _, sl := range slices.Clone(all) {
				f(sl)
			}
		}
	}
}

// EndPeer ends the sessions of servers with a client, each after its last call.
func (u *Upstreams) EndPeer(key string) {
	for _, up := range u.all() {
		up.slotsOf(key, func(sl *slot) {
			up.vacate(sl)
		})
	}
}

// RootsChanged notifies the servers of a client that its roots changed.
func (u *Upstreams) RootsChanged(key string) {
	u.tell(key, func(ctx context.Context, s *session) {
		if s.modern() || !s.slot.key.can.RootsChanged {
			return
		}
		if text, err := wire.Request("", "notifications/roots/list_changed", nil); err == nil {
			_ = s.link.tell(ctx, text) // a server that cannot be notified is about to end
		}
	})
}

// SetLogLevel sets the level of the log messages that a client wants. Sessions that are opened later get it
// from [Peer.LogLevel].
func (u *Upstreams) SetLogLevel(key, level string) {
	u.tell(key, func(ctx context.Context, s *session) { s.setLevel(ctx, level) })
}

// tellTimeout is how long a server may take to accept a notification of a change.
const tellTimeout = 5 * time.Second

// tell calls f concurrently for each session of a client, and waits.
func (u *Upstreams) tell(key string, f func(context.Context, *session)) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, up := range u.all() {
		up.slotsOf(key, func(sl *slot) {
			if s := sl.current; s != nil && !s.ended() {
				s.users++
				all.Go(func() {
					defer up.release(s)
					f(ctx, s)
				})
			}
		})
	}
	all.Wait()
}

// all returns the servers that may have sessions, including replaced servers.
func (u *Upstreams) all() []*upstream {
	u.mu.RLock()
	defer u.mu.RUnlock()
	all := slices.Clone(u.gone)
	for _, up := range u.set {
		all = append(all, up)
	}
	return all
}

// clientRequest returns the request that a message of the server belongs to: the request in whose stream
// the message came, or else the latest request of the session; nil without a request.
func (s *session) clientRequest(x *exchange) *clientRequest {
	if x != nil && x.clientRequest != nil {
		return x.clientRequest
	}
	if s.slot == nil {
		return nil
	}
	s.slot.mu.Lock()
	defer s.slot.mu.Unlock()
	if n := len(s.slot.requests); n > 0 {
		return s.slot.requests[n-1]
	}
	if p := s.slot.last; p != nil && !p.Modern {
		return &clientRequest{ctx: context.Background(), peer: p}
	}
	return nil
}

// modern reports whether the session speaks MCP 2026-07-28 or later.
func (s *session) modern() bool { return wire.IsModern(s.hello.Version) }

// separate reports whether each request has its own stream.
func (s *session) separate() bool {
	_, ok := s.link.(*httpLink)
	return ok
}

// setLevel sets the client's level of log messages on an older server.
func (s *session) setLevel(ctx context.Context, level string) {
	if level == "" || s.modern() || s.hello.can().Logging == nil {
		return
	}
	s.levels.Lock()
	defer s.levels.Unlock()
	if s.level == level {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	got, err := s.link.send(ctx, &exchange{id: s.calls.NewID(), method: "logging/setLevel", params: []param{{"level", level}}})
	if err == nil && got.answer.Error != nil {
		err = &refusal{got.answer.Failure()}
	}
	if err != nil {
		s.log.Debug("the server rejected the log level", "level", level, "error", s.mask(err.Error()))
		return
	}
	s.level = level
}

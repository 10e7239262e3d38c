package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// session is a client that began with initialize, over HTTP or stdio. It ends with a DELETE of its client,
// with the end of stdin, after a time without requests and streams, or with the server.
type session struct {
	server  *Server
	id      string // secret; empty over stdio
	user    string
	toolset string           // the toolset that the session belongs to
	key     string           // identifies the client to MCP servers
	quota   *admission.Quota // the quota that it counts toward; nil over stdio
	calls   wire.Calls       // our requests to the client
	running wire.Running     // requests of the client
	replays *replayStore     // nil over stdio
	over    chan struct{}    // closed when the session ends

	mu      sync.Mutex
	version string // empty before initialize
	can     mcp.Capabilities
	level   string            // requested level of log messages
	watched map[string]v1.Key // servers of the subscribed resources
	tell    func(text []byte) // sends messages outside of requests; nil without a listener
	using   int               // number of running requests and streams of the client
	used    time.Time         // when the last one ended
	idle    *time.Timer       // ends the session; nil without a timeout
	after   time.Duration
	ended   bool
	tasks   sync.WaitGroup // background tasks
}

// sessions holds all open sessions.
type sessions struct {
	mu      sync.Mutex
	all     map[*session]bool
	byID    map[string]*session
	closing bool
	ending  sync.WaitGroup
	evicted int       // sessions that made room for others since told
	told    time.Time // when evictions were last logged
}

// open creates a session; nil once the server has stopped. At its end, the session returns its place to
// quota, which may be nil.
func (s *Server) open(id, user, toolset string, after time.Duration, quota *admission.Quota) *session {
	name := id
	if name == "" { // stdio: the process serves one client
		name = s.run
	}
	n := &session{server: s, id: id, user: user, toolset: toolset, key: "session-" + wire.Hash(name), quota: quota, calls: wire.Calls{Prefix: "toolctl-"}, over: make(chan struct{}), used: time.Now(), after: after, watched: map[string]v1.Key{}}
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	if s.sessions.closing {
		return nil
	}
	if s.sessions.all == nil {
		s.sessions.all, s.sessions.byID = map[*session]bool{}, map[string]*session{}
	}
	s.sessions.all[n] = true
	if id != "" {
		s.sessions.byID[id] = n
	}
	s.sessions.ending.Add(1)
	if after > 0 {
		n.idle = time.AfterFunc(after, func() { n.endIdle() })
	}
	return n
}

// evict ends the session of a quota that was idle longest, of the principal who unless that is empty. It
// returns the session and its idle time, or nil if every session has a running request or stream.
func (s *Server) evict(quota *admission.Quota, who string) (*session, time.Duration) {
	for {
		oldest, used := s.sessions.idleLongest(quota, who)
		if oldest == nil || oldest.endIdle() {
			return oldest, time.Since(used)
		}
	}
}

func (s *sessions) idleLongest(quota *admission.Quota, who string) (oldest *session, used time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.all {
		if n.quota != quota || who != "" && n.user != who {
			continue
		}
		if since, idle := n.idleSince(); idle && (oldest == nil || since.Before(used)) {
			oldest, used = n, since
		}
	}
	return oldest, used
}

// countEvicted counts an evicted session. Once a minute it returns the number of evictions since the last
// report; otherwise it returns 0.
func (s *sessions) countEvicted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evicted++
	now := time.Now()
	if now.Sub(s.told) < time.Minute {
		return 0
	}
	count := s.evicted
	s.evicted, s.told = 0, now
	return count
}

// find returns a session for a request, in use until done is called; nil if there is no such session.
func (s *Server) find(id string) (n *session, done func()) {
	s.sessions.mu.Lock()
	n = s.sessions.byID[id]
	s.sessions.mu.Unlock()
	if n == nil || !n.use() {
		return nil, nil
	}
	return n, n.leave
}

func (n *session) use() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return false
	}
	if n.using++; n.using == 1 && n.idle != nil {
		n.idle.Stop()
	}
	return true
}

func (n *session) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.using--
	n.used = time.Now()
	if n.using == 0 && n.idle != nil && !n.ended {
		n.idle.Reset(n.after)
	}
}

func (n *session) idleSince() (since time.Time, idle bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.used, n.using == 0 && !n.ended
}

// begin records the client's initialize; false if the client has sent it before.
func (n *session) begin(version string, can mcp.Capabilities) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.version != "" {
		return false
	}
	n.version, n.can = version, can
	return true
}

func (n *session) begun() (version string, can mcp.Capabilities) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.version, n.can
}

var errSessionEnded = errors.New("the session has ended")

// end ends the session, its requests, and its tasks at servers, in the background. It may be called more
// than once.
func (n *session) end() {
	n.mu.Lock()
	n.finish()
}

// endIdle ends the session if its client is not using it.
func (n *session) endIdle() bool {
	n.mu.Lock()
	if n.using > 0 || n.ended {
		n.mu.Unlock()
		return false
	}
	n.finish()
	return true
}

// finish does the work of end. It is called under mu, and unlocks mu.
func (n *session) finish() {
	if n.ended {
		n.mu.Unlock()
		return
	}
	n.ended = true
	watched := n.watched
	n.watched = nil
	if n.idle != nil {
		n.idle.Stop()
	}
	n.mu.Unlock()
	s := n.server
	s.sessions.mu.Lock()
	delete(s.sessions.all, n)
	delete(s.sessions.byID, n.id)
	s.sessions.mu.Unlock()
	n.running.CancelAll(errSessionEnded)
	n.calls.Close()
	close(n.over)
	if n.replays != nil {
		n.replays.end()
	}
	go func() {
		defer s.sessions.ending.Done()
		n.tasks.Wait()
		for uri, server := range watched {
			s.unwatch(server, uri)
		}
		s.catalog.EndPeer(n.key)
		if n.id != "" {
			s.turns.forget(wire.SessionName(n.id))
		}
		if n.quota != nil {
			n.quota.Give(n.user)
		}
	}()
}

// endSessions ends all sessions and prevents new ones.
func (s *Server) endSessions() {
	s.sessions.mu.Lock()
	s.sessions.closing = true
	all := slices.Collect(maps.Keys(s.sessions.all))
	s.sessions.mu.Unlock()
	for _, n := range all {
		n.end()
	}
}

// background runs f without delaying the client's next message.
func (n *session) background(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ended {
		n.tasks.Go(f)
	}
}

// listen passes messages outside of requests to tell, until stop is called; false if there already is a
// listener.
func (n *session) listen(tell func([]byte)) (stop func(), ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tell != nil {
		return nil, false
	}
	n.tell = tell
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.tell = nil
	}, true
}

// say sends a message outside of requests to the client, if there is a listener.
func (n *session) say(text []byte) {
	n.mu.Lock()
	tell := n.tell
	if n.version == "" { // a client gets no messages before initialize
		tell = nil
	}
	n.mu.Unlock()
	if tell != nil {
		tell(text)
	}
}

func (n *session) logLevel() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.level
}

func (n *session) setLevel(level string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.level = level
}

// batchless is the first version without batches.
const batchless = "2025-06-18"

// batches reports whether the client may send several messages in a batch.
func (n *session) batches() bool {
	version, _ := n.begun()
	return version != "" && version < batchless
}

// answerBatch answers the messages of a batch one after the other. It returns nil if the batch contains no
// request. of holds the values that all requests share.
func (n *session) answerBatch(ctx context.Context, of *request, all []wire.Message) []byte {
	var text bytes.Buffer
	for _, m := range all {
		switch m.Kind() {
		case wire.Reply:
			n.calls.Deliver(m)
		case wire.Notification:
			n.server.said(m, n)
		default:
			q := *of
			q.Message, q.session = m, n
			a := n.answer(ctx, &q)
			text.WriteByte("[,"[min(text.Len(), 1)])
			text.Write(a.text)
		}
	}
	if text.Len() == 0 {
		return nil
	}
	text.WriteByte(']')
	return text.Bytes()
}

func (n *session) answer(ctx context.Context, q *request) *reply {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	failed := n.server.identify(q)
	if failed == nil && !n.running.Begin(q.ID, cancel) {
		failed = duplicate(q.ID)
	}
	if failed != nil {
		return write(q.ID, nil, failed)
	}
	defer n.running.End(q.ID)
	res, failed := n.server.dispatch(ctx, q)
	return write(q.ID, res, failed)
}

// ask sends a request to the client and returns the result, which is an object.
func (n *session) ask(ctx context.Context, q mcp.InputRequest, send func([]byte) error) (json.RawMessage, error) {
	id := n.calls.NewID()
	text, err := wire.Request(id, q.Method, q.Params)
	if err != nil {
		return nil, err
	}
	m, err := n.calls.Do(ctx, id, func() error { return send(text) }, func(text []byte) { _ = send(text) })
	switch failed := m.Failure(); {
	case errors.Is(err, wire.ErrClosed):
		return nil, errSessionEnded
	case err != nil:
		return nil, err
	case failed != nil: // the same error type as for a server
		return nil, &v1.MCPError{Code: failed.Code, Message: failed.Message}
	case len(m.Body) == 0 || m.Body[0] != '{':
		return nil, errors.New("the client's answer is not an object")
	}
	return m.Body, nil
}

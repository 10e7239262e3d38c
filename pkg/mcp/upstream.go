package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/proc"
	"toolctl.dev/toolctl/internal/redact"
)

// upstream is one server: its session, if there is one, and what is known of it.
type upstream struct {
	// Fixed after newUpstream.
	key   v1.Key
	spec  *v1.MCPServer
	owner *Upstreams
	log   *slog.Logger

	stderr    proc.Tail
	legacy    atomic.Bool  // the server does not survive server/discover
	transport atomic.Value // string

	linking sync.Mutex      // held by what makes the way to the server; guards the next two
	base    *http.Transport // shared by all sessions of a server with a URL
	output  outputMasker    // what is masked in what it says outside of requests
	auth    oauthHandler    // keeps tokens from one session to the next

	secrets atomic.Pointer[redact.Masker] // keys that came from the environment

	modernOnly atomic.Bool // the server refuses the handshake of older clients

	running sync.WaitGroup  // every goroutine of the upstream
	life    context.Context // ends when the upstream is closed
	end     context.CancelFunc

	mu       sync.Mutex
	closed   bool // no session is opened any more
	ended    bool // and no goroutine is started
	shared   slot
	away     error // why it could not be reached the last time, in whichever session; nil when it could
	peers    map[ownerKey][]*slot
	free     chan struct{}     // closed when one of them may have become free
	sessions map[*session]bool // that have not ended, those out of use included
	openings int               // that go on
	starts   int
	known    lists           // what the server last listed
	dirty    bool            // the server said that its lists changed
	refresh  bool            // a goroutine reads them anew
	said     map[string]bool // the lists that it said it of, until they were read

	relays    map[*relaying]bool // to other processes
	reopening bool
	watched   map[string]int  // subscriptions to resources, by address
	updated   map[string]bool // resources whose change is not told yet
	updating  bool            // a goroutine tells them
}

func newUpstream(owner *Upstreams, spec *v1.MCPServer) *upstream {
	u := &upstream{key: spec.Key(), spec: spec, owner: owner, sessions: map[*session]bool{},
		relays: map[*relaying]bool{}, peers: map[ownerKey][]*slot{}, free: make(chan struct{}), said: map[string]bool{}, watched: map[string]int{}, updated: map[string]bool{},
		log: owner.opts.Logger.With(slog.String("server", spec.Metadata.Name))}
	u.key.Kind = v1.KindMCPServer
	u.life, u.end = context.WithCancel(context.Background())
	u.stderr.Max = 64 << 10
	switch {
	case spec.Spec.Command != "":
		u.transport.Store("stdio")
	case spec.Spec.Transport == v1.TransportSSE:
		u.transport.Store(v1.TransportSSE)
	default:
		u.transport.Store(v1.TransportStreamableHTTP)
	}
	return u
}

// failure is the error of a server that cannot be reached, in words for callers and for whoever runs it.
func (u *upstream) failure(callers, operators string) error {
	return &v1.MCPError{Server: u.key.Name, Message: callers, Detail: operators}
}

// lostSession is the error of a session that ended.
func (u *upstream) lostSession(s *session) error {
	why := clip.Bytes(s.mask(s.reason().Error()), maxErrorText)
	if s.remote { // what became of the other process is for callers
		return u.unavailable("%s", why)
	}
	return u.failure("the session was lost", why)
}

const noSession = "no session"

// unavailable is failure when callers may know why.
func (u *upstream) unavailable(format string, args ...any) error {
	return &v1.MCPError{Server: u.key.Name, Message: fmt.Sprintf(format, args...)}
}

// acquire returns the session of a slot, opening it when there is none. Who gets it
// must release it. While the server is left alone after failures, it fails at once; a
// short pause after a death it waits out.
func (u *upstream) acquire(ctx context.Context, sl *slot) (*session, error) {
	for {
		u.mu.Lock()
		if s := sl.current; s != nil && !s.ended() {
			s.users++
			u.mu.Unlock()
			return s, nil
		}
		if u.closed || sl.gone {
			u.mu.Unlock()
			return nil, u.unavailable("the server is no longer in use")
		}
		if sl.opening == nil {
			if wait := sl.retryAfter.Sub(u.owner.opts.Now()); wait > 0 {
				err, short := u.backoffError(sl, wait), sl.died && wait <= maxPause
				u.mu.Unlock()
				if !short {
					return nil, err
				}
				if err := u.pause(ctx, wait); err != nil {
					return nil, err
				}
				continue
			}
			u.begin(ctx, sl)
		}
		o := sl.opening
		u.mu.Unlock()
		select {
		case <-o.done:
			if o.err != nil {
				return nil, o.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// maxPause is the longest back-off that a call waits out.
const maxPause = time.Second

// pause waits until a server that died may be started again.
func (u *upstream) pause(ctx context.Context, wait time.Duration) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-u.life.Done():
		return u.unavailable("the server is no longer in use")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *upstream) backoffError(sl *slot, wait time.Duration) error {
	e := &v1.MCPError{Server: u.key.Name, Message: sl.lastErr.Error()}
	var last *v1.MCPError
	if errors.As(sl.lastErr, &last) {
		e.Message, e.Detail, e.Cause = last.Message, last.Detail, last.Cause
	}
	next := fmt.Sprintf("; next attempt in %s", clip.Duration(max(wait.Round(10*time.Millisecond), 10*time.Millisecond)))
	e.Message += next
	if e.Detail != "" {
		e.Detail += next
	}
	return e
}

// release gives a session back.
func (u *upstream) release(s *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.users--
	u.endUnused(s)
}

var errUnused = errors.New("the session is no longer used")

// retire takes a session out of use: new calls get another, and it ends when the
// last of its calls has ended. It is called under mu.
func (u *upstream) retire(s *session) {
	if s.retired {
		return
	}
	s.retired = true
	close(s.leaving)
	if s.slot.current == s {
		s.slot.current = nil
	}
	u.endUnused(s)
}

func (u *upstream) endUnused(s *session) {
	if s.retired && s.users == 0 && !u.ended {
		u.running.Go(func() { s.shut(errUnused) })
	}
}

// begin opens the session of a slot in a goroutine of its own: it is for everyone who
// waits, so it does not end with the first of them. It is called under mu.
func (u *upstream) begin(ctx context.Context, sl *slot) {
	o := &opening{done: make(chan struct{})}
	sl.opening = o
	u.openings++
	// The session gets only the span of the first of them, because it is for others too, with their own clients, deadlines
	// and policies.
	ctx = trace.ContextWithSpan(u.life, trace.SpanFromContext(ctx))
	u.running.Go(func() {
		defer close(o.done)
		s, err := u.open(ctx, sl)
		u.opened(sl, s, err)
		o.err = err
	})
}

// opened notes how the opening of a session went.
func (u *upstream) opened(sl *slot, s *session, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	sl.opening = nil
	u.openings--
	if err != nil {
		if refused := (*handshakeError)(nil); !errors.As(err, &refused) {
			u.away = err
		}
		u.failed(sl, err, false)
		return
	}
	u.starts++
	sl.lastErr, sl.retryAfter = nil, time.Time{} // the session before may have ended after this one was begun
	sl.current = s
	u.sessions[s] = true
	if sl == &u.shared && !u.known.read.IsZero() {
		u.reread() // another process may offer other tools
	}
	if sl == &u.shared && len(u.watched) > 0 {
		u.running.Go(func() { u.watchAgain(s) })
	}
	u.running.Go(func() { u.watch(s) })
	switch {
	case u.ended:
		u.running.Go(func() { s.shut(errUnused) })
	case u.closed, sl.gone:
		u.retire(s)
	}
}

// reached notes whether a request in a session that lasts got to the server: over HTTP sessions do not end with it.
func (u *upstream) reached(s *session, got receipt, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case got.answer != nil && u.away != nil:
		u.away = nil
		if !u.ended {
			u.running.Go(u.tellChange)
		}
	case err != nil && !got.reached && s.slot.current == s && !s.ended():
		if u.away == nil {
			u.log.Warn(v1.Detailed(err))
		}
		u.away = err
	}
}

// watch waits for the end of a session and cleans up after it.
func (u *upstream) watch(s *session) {
	<-s.done
	s.explainEnd(nil)
	u.mu.Lock()
	if sl := s.slot; sl.current == s {
		sl.current = nil
		if s.proven.Load() {
			sl.failures = 0
		}
		err := u.lostSession(s)
		u.log.Warn(v1.Detailed(err))
		u.failed(sl, err, true)
		if s.remote {
			u.reopen()
		}
	}
	u.mu.Unlock()
	s.link.bye()
	s.link.cut()
	s.endAsks()
	s.link.end()
	s.out.close()
	u.mu.Lock()
	delete(u.sessions, s)
	u.mu.Unlock()
}

const (
	firstWait = 250 * time.Millisecond
	lastWait  = 30 * time.Second
)

// failed sets when the next session may be opened: at once after the first death of
// a session that worked, and then after a time that doubles. A violation of the
// manifest is not the server's, and costs nothing to look at again; nor does another process.
func (u *upstream) failed(sl *slot, err error, worked bool) {
	sl.lastErr, sl.died = err, worked
	var invalid *v1.ValidationError
	var elsewhere *ownerUnreachableError
	if errors.As(err, &invalid) || errors.As(err, &elsewhere) {
		return
	}
	sl.failures++
	if worked && sl.failures == 1 {
		sl.retryAfter = time.Time{}
		return
	}
	sl.retryAfter = u.owner.opts.Now().Add(min(firstWait<<min(sl.failures-1, 10), lastWait))
}

// close ends the sessions and waits for every goroutine.
func (u *upstream) close() {
	u.mu.Lock()
	if !u.ended {
		u.closed, u.ended = true, true
		u.end()
	}
	var live []*session
	for s := range u.sessions {
		live = append(live, s)
	}
	u.shared.current = nil
	u.vacateAll()
	u.mu.Unlock()
	var shut sync.WaitGroup
	for _, s := range live {
		shut.Go(func() { s.shut(errors.New("toolctl closed the session")) })
	}
	shut.Wait()
	u.running.Wait()
	if u.base != nil {
		u.base.CloseIdleConnections()
	}
}

// leave ends the session once its calls have ended, without waiting.
func (u *upstream) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	if u.shared.current != nil {
		u.retire(u.shared.current)
	}
	u.vacateAll()
}

// vacateAll takes the sessions of all clients out of use. It is called under mu.
func (u *upstream) vacateAll() {
	for _, all := range u.peers {
		for _, sl := range slices.Clone(all) {
			u.vacate(sl)
		}
	}
}

// endIdle ends an upstream that was left, once nothing of it runs any more.
func (u *upstream) endIdle() bool {
	u.mu.Lock()
	idle := len(u.sessions) == 0 && u.openings == 0 && !u.refresh
	u.mu.Unlock()
	if idle {
		u.close()
	}
	return idle
}

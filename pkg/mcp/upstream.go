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

// upstream is one server with its sessions and its last known state.
type upstream struct {
	// Fixed after newUpstream.
	key   v1.Key
	spec  *v1.MCPServer
	owner *Upstreams
	log   *slog.Logger

	stderr    proc.Tail
	legacy    atomic.Bool  // the server crashes on server/discover
	transport atomic.Value // string

	linking sync.Mutex      // held while the link is created; guards base and auth
	base    *http.Transport // shared by all sessions with a server at a URL
	output  outputMasker    // masks for output outside of requests
	auth    oauthHandler    // keeps tokens across sessions

	secrets atomic.Pointer[redact.Masker] // keys from the environment

	modernOnly atomic.Bool // the server refuses the handshake of older clients

	running sync.WaitGroup  // all goroutines of the upstream
	life    context.Context // ends when the upstream is closed
	end     context.CancelFunc

	mu       sync.Mutex
	closed   bool // no new session may be opened
	ended    bool // no new goroutine may be started
	shared   slot
	away     error // why the server could not be reached the last time, in any session; nil if it could be reached
	peers    map[ownerKey][]*slot
	free     chan struct{}     // closed when a slot may have become free
	sessions map[*session]bool // all open sessions, including those out of use
	openings int               // number of sessions that are being opened
	starts   int
	known    lists           // the last lists of the server
	dirty    bool            // the server reported that its lists changed
	refresh  bool            // a goroutine is reading the lists again
	said     map[string]bool // lists reported as changed since the last read

	relays    map[*relaying]bool // relays to other processes
	reopening bool
	watched   map[string]int  // number of subscriptions by resource address
	updated   map[string]bool // resources with changes not yet reported
	updating  bool            // a goroutine is reporting changes
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

// failure returns the error for a server that cannot be reached, with one text for callers and one for
// operators.
func (u *upstream) failure(callers, operators string) error {
	return &v1.MCPError{Server: u.key.Name, Message: callers, Detail: operators}
}

// lostSession returns the error for a session that ended.
func (u *upstream) lostSession(s *session) error {
	why := clip.Bytes(s.mask(s.reason().Error()), maxErrorText)
	if s.remote { // callers may see what happened to the other process
		return u.unavailable("%s", why)
	}
	return u.failure("the session was lost", why)
}

const noSession = "no session"

// unavailable does the same as failure if callers may see the reason.
func (u *upstream) unavailable(format string, args ...any) error {
	return &v1.MCPError{Server: u.key.Name, Message: fmt.Sprintf(format, args...)}
}

// acquire returns the session of a slot, and opens it if necessary. The caller must release it. During a
// back-off after failures, acquire fails at once, except that it waits for a short pause after a crash.
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

// maxPause is the longest back-off for which a call waits.
const maxPause = time.Second

// pause waits until a crashed server may be started again.
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

// release returns a session.
func (u *upstream) release(s *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.users--
	u.endUnused(s)
}

var errUnused = errors.New("the session is no longer used")

// retire takes a session out of use: new calls get another session, and it ends after its last call. It is
// called under mu.
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

// begin opens the session of a slot in its own goroutine, so that the session does not end with the first
// of the callers that wait for it. It is called under mu.
func (u *upstream) begin(ctx context.Context, sl *slot) {
	o := &opening{done: make(chan struct{})}
	sl.opening = o
	u.openings++
	// The context contains only the span of the first caller, because the session also serves others, with
	// their own clients, deadlines and policies.
	ctx = trace.ContextWithSpan(u.life, trace.SpanFromContext(ctx))
	u.running.Go(func() {
		defer close(o.done)
		s, err := u.open(ctx, sl)
		u.opened(sl, s, err)
		o.err = err
	})
}

// opened records the outcome of opening a session.
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
	sl.lastErr, sl.retryAfter = nil, time.Time{} // the previous session may have ended after this one was started
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

// reached records whether a request in an open session reached the server. It is needed because sessions
// over HTTP do not end when the server becomes unreachable.
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

// watch waits for the end of a session and cleans up.
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

// failed sets when the next session may be opened: at once after the first crash of a working session, and
// then after a time that doubles. A violation of the manifest, or an unreachable owner process, causes no
// back-off.
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

// close ends the sessions and waits for all goroutines.
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

// leave ends the sessions after their calls, without waiting.
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

// endIdle ends an upstream that is out of use, once nothing of it is running.
func (u *upstream) endIdle() bool {
	u.mu.Lock()
	idle := len(u.sessions) == 0 && u.openings == 0 && !u.refresh
	u.mu.Unlock()
	if idle {
		u.close()
	}
	return idle
}

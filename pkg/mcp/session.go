package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/redact"
)

// session is one session with a server, from its start to its end.
type session struct {
	// Fixed before the session is shared.
	slot      *slot
	upstream  *upstream
	link      link
	sdkClient *sdk.Client
	client    *sdk.ClientSession
	log       *slog.Logger
	masks     *redact.Masker
	patience  time.Duration // for the answer to server/discover

	probe atomic.Pointer[discoverProbe]
	hello hello

	heard     atomic.Bool  // the server said something
	proven    atomic.Bool  // the server answered a call
	openCalls atomic.Int32 // requests of the server that wait for our answer

	out outbox // to the client whose session it is

	levels sync.Mutex
	level  string // of the log messages that were asked for

	asks sync.WaitGroup // requests of the server that are being answered

	mu      sync.Mutex
	asking  map[string]context.CancelCauseFunc // those, by id
	asksOff bool
	pending map[string]chan<- *answer // by id, of transports that carry all messages in one stream
	tokens  map[string]*exchange      // by progress token
	cause   error                     // why it ended, as far as it is known

	remote  bool          // the server is that of another process, which relays
	leaving chan struct{} // closed when the session takes no more users
	done    chan struct{} // closed when the session ended

	// Under the mutex of the upstream.
	users   int
	retired bool // no more users; it ends with the last one
}

// hello is what came of the latest request of the SDK's own: several open a session, of
// which the last counts.
type hello struct {
	answer atomic.Pointer[answer]
	status atomic.Int32           // of the HTTP response
	alien  atomic.Pointer[string] // its content type, when MCP has no such answer
}

func (h *hello) begin() {
	h.answer.Store(nil)
	h.status.Store(0)
	h.alien.Store(nil)
}

// link is the way to a server that one session uses.
type link interface {
	sdk.Transport
	// send sends a request, once the session is open, and returns what came of it: the
	// answer, or an error. It returns soon after ctx ends, and the server is told.
	send(ctx context.Context, x *exchange) (receipt, error)
	// cut ends the way at once: what waits for the server fails. It may be called again.
	cut()
	// end frees what is left after the session was closed, such as a child process,
	// and waits for it.
	end()
	// outcome says how the way ended by itself; nil when that is not known. With wait
	// it gives the end a moment to show.
	outcome(wait bool) error
}

// mask takes what came from the environment out of a text of ours.
func (s *session) mask(text string) string { return s.masks.Values(text) }

// spoken masks what the server says outside of any request.
func (s *session) spoken() *redact.Masker { return s.masks.Join(s.upstream.spoken.masker()) }

// masksOf masks what is said within a request for a client, and outside of any.
func (s *session) masksOf(r *clientRequest) *redact.Masker {
	if r == nil || redact.FromContext(r.ctx) == nil {
		return s.spoken()
	}
	return redact.FromContext(r.ctx).Join(s.upstream.secrets.Load())
}

func (s *session) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// fail says why the session is about to end; the first reason stays.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.cause = err
	}
}

// reason returns what fail was told; nil when it was told nothing.
func (s *session) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// watch waits for the end of the session. A dead child and a stream that broke end it.
func (s *session) watch() {
	err := s.client.Wait()
	if s.reason() == nil {
		if o := s.link.outcome(err == nil); o != nil {
			err = o
		}
		if err == nil {
			err = errors.New("the server ended it")
		}
		s.fail(fmt.Errorf("the session was lost: %w", err))
	}
	close(s.done)
}

// shut ends the session and waits until it has ended.
func (s *session) shut(why error) {
	s.fail(why)
	s.link.cut()
	_ = s.client.Close()
	<-s.done
}

// connectError says why a session could not be opened.
type connectError struct {
	error
	dead error // how the child ended by itself; nil when it did not
}

func (e *connectError) Unwrap() error { return e.error }

// connect opens a session over a link. It returns soon after ctx ends, and after an
// error nothing is left of the session.
func connect(ctx context.Context, l link, s *session, o *sdk.ClientOptions, who *sdk.Implementation, version string) error {
	s.link, s.done, s.leaving, s.out.log = l, make(chan struct{}), make(chan struct{}), s.log
	s.pending, s.tokens = map[string]chan<- *answer{}, map[string]*exchange{}
	stop := context.AfterFunc(ctx, l.cut)
	s.sdkClient = sdk.NewClient(who, o)
	client, err := s.sdkClient.Connect(ctx, l, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if !stop() && err == nil {
		_ = client.Close()
		err = ctx.Err()
	}
	if err != nil {
		var dead error
		if s.reason() == nil && ctx.Err() == nil {
			dead = l.outcome(errors.Is(err, io.EOF) || errors.Is(err, sdk.ErrConnectionClosed))
		}
		l.cut()
		s.endAsks()
		l.end()
		s.out.close()
		return &connectError{err, dead}
	}
	s.client = client
	return nil
}

// expect readies the session for what comes back for an exchange.
func (s *session) expect(x *exchange, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = x
}

// forget ends what the session does for an exchange that nobody waits for any more.
func (s *session) forget(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, token)
}

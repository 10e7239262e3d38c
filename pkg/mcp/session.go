package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// session is one session with a server, from its start to its end.
type session struct {
	// Fixed before the session is shared.
	slot     *slot
	upstream *upstream
	link     link
	hello    hello
	log      *slog.Logger
	masks    *redact.Masker
	patience time.Duration // for the answer to server/discover

	open      atomic.Bool
	heard     atomic.Bool  // the server has sent a message
	proven    atomic.Bool  // the server has answered a call
	openCalls atomic.Int32 // requests of the server that wait for our response

	out   outbox // to the client that owns the session
	calls wire.Calls
	asked wire.Running // requests of the server that are being answered

	levels sync.Mutex
	level  string // requested level of log messages

	mu        sync.Mutex
	off       bool                          // the background accepts no new tasks
	tasks     sync.WaitGroup                // background tasks
	exchanges map[string]*exchange          // by the ID of the request, which is also its progress token
	listen    map[string]context.CancelFunc // streams for changes of resources, by address
	cause     error                         // why the session ended, if known

	remote  bool          // another process runs the server and relays it
	leaving chan struct{} // closed when the session accepts no new users
	over    sync.Once
	done    chan struct{} // closed when the session has ended

	// Under the mutex of the upstream.
	users   int
	retired bool // accepts no new users, and ends with the last user
}

// link is the connection of one session to a server.
type link interface {
	// begin starts receiving the messages of the server.
	begin()
	// send sends a request and returns its outcome: the response or an error. When ctx ends, it returns soon
	// and notifies the server.
	send(ctx context.Context, x *exchange) (receipt, error)
	// tell sends a notification or a response.
	tell(ctx context.Context, message []byte) error
	// ready sends the notification that opens the session.
	ready(ctx context.Context, message []byte) error
	// opened is called once the session is open. From then on, the link receives messages outside of requests.
	opened()
	// bye notifies the server that the session ends.
	bye()
	// cut closes the connection at once, so that pending requests fail. It may be called more than once.
	cut()
	// end releases the remaining resources after the session was closed, such as a child process, and waits for
	// that.
	end()
	// outcome returns why the connection ended by itself; nil if that is unknown. With wait it allows a moment
	// for the end to become visible.
	outcome(wait bool) error
}

// mask masks values from the environment in our own texts.
func (s *session) mask(text string) string { return s.masks.Values(text) }

// outputMasks returns the masks for messages of the server outside of requests.
func (s *session) outputMasks() *redact.Masker { return s.masks.Join(s.upstream.output.masker()) }

// masksOf returns the masks for messages within a client's request. With nil, or without masks in the
// request, it returns those for messages outside of requests.
func (s *session) masksOf(r *clientRequest) *redact.Masker {
	if r == nil || redact.FromContext(r.ctx) == nil {
		return s.outputMasks()
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

// fail records why the session is about to end. Only the first reason counts.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.cause = err
	}
}

// reason returns the reason recorded by fail; nil without a reason.
func (s *session) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// lose ends the session because its connection ended, with an error or silently.
func (s *session) lose(err error) {
	if !s.open.Load() { // the opener of the session reports the error
		if err != nil {
			s.fail(fmt.Errorf("the session was lost: %w", err))
		}
		s.finish()
		return
	}
	s.explainEnd(err)
	s.finish()
}

func (s *session) explainEnd(err error) {
	if s.reason() == nil {
		if o := s.link.outcome(err == nil); o != nil {
			err = o
		}
		if err == nil {
			err = errors.New("the server ended it")
		}
		s.fail(fmt.Errorf("the session was lost: %w", err))
	}
}

func (s *session) finish() {
	s.over.Do(func() {
		s.calls.Close()
		close(s.done)
	})
}

// shut ends the session and waits for its end.
func (s *session) shut(why error) {
	s.fail(why)
	s.link.cut()
	s.finish()
}

// connectError is the reason why a session could not be opened.
type connectError struct {
	error
	dead error // how the child ended by itself; nil if it did not
}

func (e *connectError) Unwrap() error { return e.error }

// connect opens a session over a link. It returns soon after ctx ends. After an error, it has cleaned up
// the session.
func connect(ctx context.Context, s *session, version string) error {
	s.exchanges, s.calls.Prefix = map[string]*exchange{}, "r"
	stop := context.AfterFunc(ctx, s.link.cut)
	s.link.begin()
	err := s.greet(ctx, version)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		var dead error
		if s.reason() == nil && ctx.Err() == nil {
			// A child that ends early is noticed by its closed output, or by the write that it can no longer read.
			dead = s.link.outcome(errors.Is(err, wire.ErrClosed) || errors.Is(err, syscall.EPIPE))
		}
		s.link.cut()
		s.finish()
		s.endAsks()
		s.link.end()
		s.out.close()
		return &connectError{err, dead}
	}
	s.open.Store(true)
	s.link.opened()
	return nil
}

// expect lets messages of the server find an exchange by its ID until forget is called.
func (s *session) expect(x *exchange) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges[x.id] = x
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.exchanges, x.id)
	}
}

package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
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
	heard     atomic.Bool  // the server said something
	proven    atomic.Bool  // the server answered a call
	openCalls atomic.Int32 // requests of the server that wait for our answer

	out   outbox // to the client whose session it is
	calls wire.Calls
	asked wire.Running // requests of the server that are being answered

	levels sync.Mutex
	level  string // of the log messages that were asked for

	mu        sync.Mutex
	off       bool                          // nothing is begun aside any more
	tasks     sync.WaitGroup                // what goes on aside
	exchanges map[string]*exchange          // by the IDs of their requests, which are their progress tokens too
	listen    map[string]context.CancelFunc // streams of changes of resources, by address
	cause     error                         // why it ended, as far as it is known

	remote  bool          // the server is that of another process, which relays
	leaving chan struct{} // closed when the session takes no more users
	over    sync.Once
	done    chan struct{} // closed when the session ended

	// Under the mutex of the upstream.
	users   int
	retired bool // no more users; it ends with the last one
}

// link is the way to a server that one session uses.
type link interface {
	// begin hears what the server says.
	begin()
	// send sends a request and returns what came of it: the answer, or an error. It returns soon
	// after ctx ends, and the server is told.
	send(ctx context.Context, x *exchange) (receipt, error)
	// tell sends a notification, or an answer.
	tell(ctx context.Context, message []byte) error
	// ready is tell for the notification that opens the session.
	ready(ctx context.Context, message []byte) error
	// opened is called once the session is open; what the server says unasked is heard from then on.
	opened()
	// bye tells the server that the session ends.
	bye()
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

// outputMasks masks what the server says outside of any request.
func (s *session) outputMasks() *redact.Masker { return s.masks.Join(s.upstream.output.masker()) }

// masksOf masks what is said within a request for a client, and outside of any.
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

// lose ends the session because its way ended, with an error or without a word.
func (s *session) lose(err error) {
	if !s.open.Load() { // who opens it says why it cannot
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

// shut ends the session and waits until it has ended.
func (s *session) shut(why error) {
	s.fail(why)
	s.link.cut()
	s.finish()
}

// connectError says why a session could not be opened.
type connectError struct {
	error
	dead error // how the child ended by itself; nil when it did not
}

func (e *connectError) Unwrap() error { return e.error }

// connect opens a session over a link. It returns soon after ctx ends, and after an
// error nothing is left of the session.
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
			dead = s.link.outcome(errors.Is(err, wire.ErrClosed))
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

// expect lets messages of the server find an exchange by its ID, until forget is called.
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

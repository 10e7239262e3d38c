package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/pkg/mcp/internal/proc"
)

// session is one session with a server, from its start to its end.
type session struct {
	// Fixed before the session is shared.
	link     link
	client   *sdk.ClientSession
	log      *slog.Logger
	masks    *strings.Replacer
	patience time.Duration // for the answer to server/discover

	probe atomic.Pointer[discoverProbe]

	heard     atomic.Bool  // the server said something
	proven    atomic.Bool  // the server answered a call
	openCalls atomic.Int32 // requests of the server that wait for our answer

	mu      sync.Mutex
	pending map[jsonrpc.ID]*exchange // of transports that carry all messages in one stream
	tokens  map[string]*exchange     // by progress token
	cause   error                    // why it ended, as far as it is known

	done chan struct{} // closed when the session ended

	// Under the mutex of the upstream.
	users   int
	retired bool // no more users; it ends with the last one
}

// link is the way to a server that one session uses.
type link interface {
	sdk.Transport
	// cut ends the way at once: what waits for the server fails. It may be called again.
	cut()
	// end frees what is left after the session was closed, such as a child process,
	// and waits for it.
	end()
	// outcome says how the way ended by itself; nil when that is not known. With wait
	// it gives the end a moment to show.
	outcome(wait bool) error
}

func (s *session) mask(text string) string { return s.masks.Replace(text) }

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
	s.link, s.done = l, make(chan struct{})
	s.pending, s.tokens = map[jsonrpc.ID]*exchange{}, map[string]*exchange{}
	stop := context.AfterFunc(ctx, l.cut)
	client, err := sdk.NewClient(who, o).Connect(ctx, l, &sdk.ClientSessionOptions{ProtocolVersion: version})
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
		l.end()
		return &connectError{err, dead}
	}
	s.client = client
	return nil
}

// tapped shows a session the messages of a connection that carries all of them in
// one stream.
type tapped struct {
	sdk.Connection
	s *session

	// Only the reader uses these, until the server has said something.
	late chan read // a read that goes on in the background
}

type read struct {
	m   jsonrpc.Message
	err error
}

// next reads a message. A server that does not answer server/discover in time gets
// the older handshake on the same session: some ignore what they do not know.
func (t *tapped) next(ctx context.Context) (jsonrpc.Message, error) {
	if t.s.heard.Load() && t.late == nil {
		return t.Connection.Read(ctx)
	}
	if t.late == nil {
		late := make(chan read, 1)
		t.late = late
		go func() { // ends with the connection, which is closed before the session ends
			m, err := t.Connection.Read(ctx)
			late <- read{m, err}
		}()
	}
	var over <-chan time.Time
	if probe := t.s.probe.Load(); probe == nil || !probe.spent {
		timer := time.NewTimer(t.s.patience)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case r := <-t.late:
		t.late = nil
		return r.m, r.err
	case <-over:
	}
	probe := t.s.probe.Load()
	if probe == nil { // nothing was asked yet
		return t.next(ctx)
	}
	t.s.probe.Store(&discoverProbe{probe.id, true})
	return &jsonrpc.Response{ID: probe.id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}}, nil
}

// discoverProbe is the request that asks a server for its version.
type discoverProbe struct {
	id    jsonrpc.ID
	spent bool // it was answered in place of the server
}

func (t *tapped) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := t.next(ctx)
		if err != nil {
			if l, ok := t.s.link.(*streamLink); ok {
				l.settle(errors.Is(err, io.EOF))
			}
			if !errors.Is(err, io.EOF) { // of an end without a word, the child's own end says more
				t.s.fail(fmt.Errorf("the session was lost: %w", err))
			}
			return nil, err
		}
		keep, err := t.see(m)
		if err != nil {
			t.s.fail(err)
			return nil, err
		}
		if keep {
			return m, nil
		}
	}
}

// see shows the session a message, which it may change; false when the SDK does not
// get it.
func (t *tapped) see(m jsonrpc.Message) (bool, error) {
	switch m := m.(type) {
	case *jsonrpc.Response:
		t.s.heard.Store(true)
		t.s.mu.Lock()
		x := t.s.pending[m.ID]
		delete(t.s.pending, m.ID)
		t.s.mu.Unlock()
		if x == nil {
			break
		}
		failure, _ := m.Error.(*jsonrpc.Error)
		if standIn := x.take(m.Result, failure); standIn != nil {
			m.Result = standIn
		}
	case *jsonrpc.Request:
		method, err := t.s.incomingRequest(m.Method, m.Params, m.IsCall())
		m.Method = method
		return method != "", err
	}
	return true, nil
}

func (t *tapped) Write(ctx context.Context, m jsonrpc.Message) error {
	switch m := m.(type) {
	case *jsonrpc.Response:
		t.s.openCalls.Add(-1)
	case *jsonrpc.Request:
		if m.Method == "server/discover" {
			t.s.probe.Store(&discoverProbe{id: m.ID})
		}
		x := exchangeOf(ctx)
		if x == nil || !m.IsCall() {
			break
		}
		t.s.mu.Lock()
		t.s.pending[m.ID] = x
		x.id = m.ID
		t.s.mu.Unlock()
		x.sent.Store(true)
		err := t.Connection.Write(ctx, m)
		if st, ok := t.Connection.(*stream); ok {
			x.stream.Store(st)
			if err != nil {
				x.sent.Store(false) // what was cut off is no message to the server
			}
		}
		return err
	}
	return t.Connection.Write(ctx, m)
}

// expect readies the session for what comes back for an exchange.
func (s *session) expect(x *exchange, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = x
}

// forget ends what the session does for an exchange that nobody waits for any more.
func (s *session) forget(x *exchange, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[x.id] == x {
		delete(s.pending, x.id)
	}
	delete(s.tokens, token)
}

// streamLink is a link over one stream of bytes: a child's pipes, or what Options.Dial opened.
type streamLink struct {
	s      *session
	stream *stream
	child  *proc.Child // nil for Options.Dial
}

func (l *streamLink) Connect(context.Context) (sdk.Connection, error) {
	return &tapped{Connection: l.stream, s: l.s}, nil
}

func (l *streamLink) cut() { l.stream.Close() }

func (l *streamLink) end() {
	if l.child != nil {
		l.child.Stop()
	}
}

func (l *streamLink) outcome(wait bool) error {
	if l.child == nil {
		return nil
	}
	if wait {
		l.waitExit()
	}
	select {
	case <-l.child.Exited():
		return fmt.Errorf("its process ended: %s", l.child.Outcome())
	default:
		return nil
	}
}

// waitExit gives a child whose stream ended a moment to end too.
func (l *streamLink) waitExit() {
	t := time.NewTimer(500 * time.Millisecond)
	defer t.Stop()
	select {
	case <-l.child.Exited():
	case <-l.stream.closed: // by us: it will not end before it is told
	case <-t.C:
	}
}

// settle finds out, after the stream ended, how far a child that is dead had read.
func (l *streamLink) settle(wait bool) {
	if l.child == nil {
		return
	}
	if wait {
		l.waitExit()
	}
	select {
	case <-l.child.Exited():
		if n, ok := l.child.Unread(); ok {
			l.stream.settle(n)
		}
	default:
	}
}

package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/nonblock"
)

// maxLine is the longest message on stdin, in bytes.
const maxLine = 16 << 20

// ServeStdio serves one client over a pair of streams (MCP specification,
// transports, stdio), until the client closes its side or ctx ends. Requests that
// came before the end of in are answered. When ctx ends, calls may go on for
// Options.DrainTimeout. When in is an [io.Closer] it is closed at the end, so that
// nothing is left reading it. out gets nothing but messages.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if f, ok := out.(*os.File); ok {
		if n := nonblock.Reopen(f); n != nil {
			defer n.Close()
			out = n
		}
	}
	out = &together{Writer: out}
	within, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	calls := &stdioCalls{server: s, out: out, workers: newWorkers(within), open: map[string]context.CancelFunc{}}
	lines := newStdin(in, out)
	lines.take, lines.last = func(line []byte) bool { return calls.take(within, line) }, calls.running.Wait
	line := &stdio{Transport: &sdk.IOTransport{Reader: lines, Writer: writer{out}, MaxLineLength: maxLine}}
	session, err := s.sdk.Connect(within, line, nil)
	if err != nil {
		return err
	}
	calls.session.Store(session)
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err = <-ended:
		<-s.drain()
	case <-ctx.Done():
		<-s.drain()
		calls.running.Wait()
		_ = session.Close() // waits for the answers to be written
		err = <-ended
	}
	end()
	calls.running.Wait()
	calls.workers.all.Wait()
	s.waitFollower(session)
	if isGone(err) || ctx.Err() != nil {
		err = nil
	}
	return err
}

// isGone reports whether a session ended because the client did: it closed its side, or
// both before it was told what changed meanwhile.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE)
}

// stdio is the SDK's transport whose end waits for the answers to what was asked: the
// SDK cancels every request when its input ends, and a client may well write its
// requests, close its side and read on.
type stdio struct{ sdk.Transport }

func (t *stdio) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &stdioConn{Connection: c, open: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

type stdioConn struct {
	sdk.Connection
	answered chan struct{} // holds a token when open has shrunk
	closed   chan struct{}
	close    sync.Once

	mu    sync.Mutex
	open  map[jsonrpc.ID]bool // requests without an answer
	begun bool                // the client has said who it is, or asked something
}

// methodListen is a request that is answered when the session ends.
const methodListen = "subscriptions/listen"

func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil {
		c.wait(ctx)
		return m, err
	}
	switch r := m.(type) {
	case *jsonrpc.Response:
		if kept, err := withCopy(r.Result, r.Result); err == nil {
			r.Result = kept
		}
	case *jsonrpc.Request:
		if !bytes.Contains(r.Params, []byte(`"inputResponses"`)) {
			break
		}
		if kept, err := keepInput(r.Params); err == nil {
			r.Params = kept
		}
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.mu.Lock()
		if r.Method != methodListen {
			c.open[r.ID] = true
		}
		c.begun = c.begun || r.Method != "initialize" // which begins with its answer
		c.mu.Unlock()
	}
	return m, nil
}

func (c *stdioConn) Write(ctx context.Context, m jsonrpc.Message) error {
	c.mu.Lock()
	_, answer := m.(*jsonrpc.Response)
	early := !c.begun && !answer
	c.begun = c.begun || answer
	c.mu.Unlock()
	if early { // nothing is said to a client before it began
		return nil
	}
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.open, r.ID)
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return err
}

// wait returns when everything is answered; calls have their timeouts.
func (c *stdioConn) wait(ctx context.Context) {
	for {
		c.mu.Lock()
		n := len(c.open)
		c.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *stdioConn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Connection.Close()
}

// writer leaves its stream open, which is not ours to close.
type writer struct{ io.Writer }

func (writer) Close() error { return nil }

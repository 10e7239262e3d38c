package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// maxLine is the maximum length of a message on stdin, in bytes.
const maxLine = 16 << 20

// stdio is the client on a pair of streams.
type stdio struct {
	server  *Server
	out     *wire.LineWriter
	session *session
}

// ServeStdio serves one client over a pair of streams (MCP specification, transports, stdio), until the
// client closes its side or ctx ends. Requests that arrived before the end of in are answered. When ctx
// ends, calls may continue for Options.DrainTimeout. If in is an [io.Closer], ServeStdio closes it at the
// end, so that no goroutine keeps reading it. out receives only messages.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &stdio{server: s, out: wire.NewLineWriter(out), session: s.open("", "", "", 0, nil)}
	if c.session == nil {
		return admission.ErrStopping
	}
	_, _ = c.session.listen(func(text []byte) { _ = c.out.Write(text) }) // the client may have gone
	within, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended := make(chan error, 1)
	go func() {
		err := c.read(within, in)
		c.session.calls.Close() // no more responses can arrive
		s.endListeners(end)
		c.session.tasks.Wait() // a client may close its side after its requests and keep reading
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
		<-s.drain()
	case <-ctx.Done():
		<-s.drain()
		end()
	}
	c.session.end()
	s.sessions.ending.Wait()
	if closer, ok := in.(io.Closer); ok {
		_ = closer.Close()
	}
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	return err
}

// endListeners ends the streams of subscriptions/listen, because no client can end them once stdin is
// closed.
func (s *Server) endListeners(end func()) {
	s.listeners.mu.Lock()
	n := len(s.listeners.all)
	s.listeners.mu.Unlock()
	if n > 0 {
		end()
	}
}

// read handles the messages of the client one after the other.
func (c *stdio) read(ctx context.Context, in io.Reader) error {
	lines := wire.NewLines(in, maxLine)
	for {
		line, err := lines.Next()
		if err != nil && len(line) == 0 {
			return err
		}
		m, err := wire.Parse(line)
		switch {
		case err == nil:
			c.take(ctx, m)
		case errors.Is(err, wire.ErrBatch) && c.session.batches():
			err = c.takeBatch(ctx, line)
		}
		switch {
		case errors.Is(err, wire.ErrSyntax):
			err = c.violation(jsonrpc.CodeParseError, "parse error: the line is not JSON")
		case err != nil:
			err = c.violation(jsonrpc.CodeInvalidRequest, "invalid request: the line is not a JSON-RPC 2.0 message")
		}
		if err != nil {
			return err
		}
	}
}

// takeBatch handles a batch of messages in one line.
func (c *stdio) takeBatch(ctx context.Context, line []byte) error {
	batch, err := wire.ParseBatch(line)
	if err == nil {
		c.session.background(func() {
			if text := c.session.answerBatch(ctx, &request{to: c}, batch); text != nil {
				_ = c.out.Write(text) // the client may have gone
			}
		})
	}
	return err
}

func (c *stdio) violation(code int64, why string) error {
	return c.out.Write(write(nil, nil, &jsonrpc.Error{Code: code, Message: why}).text)
}

// take handles one message.
func (c *stdio) take(ctx context.Context, m wire.Message) {
	switch m.Kind() {
	case wire.Reply:
		c.session.calls.Deliver(m)
		return
	case wire.Notification:
		c.server.said(m, c.session)
		return
	}
	r := &request{Message: m, session: c.session, to: c}
	failed := c.server.identify(r)
	ctx, cancel := context.WithCancelCause(ctx)
	if failed == nil && !c.session.running.Begin(m.ID, cancel) {
		failed = duplicate(m.ID)
	}
	if failed != nil {
		cancel(nil)
		_ = c.out.Write(write(m.ID, nil, failed).text) // the client may have gone
		return
	}
	serve := func() {
		defer cancel(nil)
		res, failed := c.server.dispatch(ctx, r)
		c.session.running.End(m.ID)                    // first, because the client may then reuse the ID
		_ = c.out.Write(write(m.ID, res, failed).text) // the client may have gone
	}
	if m.Method == methodInitialize { // later requests belong to the session of this one
		serve()
		return
	}
	c.session.background(serve)
}

func (c *stdio) notify(method string, params any) error {
	text, err := wire.Request("", method, params)
	if err == nil {
		err = c.out.Write(text)
	}
	return err
}

func (c *stdio) ask(ctx context.Context, q mcp.InputRequest) (json.RawMessage, error) {
	return c.session.ask(ctx, q, c.out.Write)
}

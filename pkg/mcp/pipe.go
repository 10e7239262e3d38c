package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"toolctl.dev/toolctl/internal/proc"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// pipe carries messages, one per line (MCP specification, basic/transports, stdio), over two pipes or any
// other byte stream.
type pipe struct {
	in  *wire.Lines
	out io.Writer

	writing chan struct{}
	written int64        // bytes; guarded by writing
	settled atomic.Bool  // the reader at the other end has ended
	read    atomic.Int64 // number of bytes that the reader has read, once settled

	shut     func() error // closes in and out
	once     sync.Once
	closed   chan struct{}
	closeErr error
}

func newPipe(in io.Reader, out io.Writer, max int, shut func() error) *pipe {
	return &pipe{in: wire.NewLines(in, max), out: out, shut: shut, writing: make(chan struct{}, 1), closed: make(chan struct{})}
}

// write writes a message and returns its end position in the stream. It blocks until ctx ends if the
// receiver does not read. If that cuts a message off, the pipe closes.
func (p *pipe) write(ctx context.Context, message []byte) (end int64, err error) {
	select {
	case p.writing <- struct{}{}:
		defer func() { <-p.writing }()
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-p.closed:
		return 0, io.ErrClosedPipe
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	message = append(message, '\n')
	p.written += int64(len(message))
	end = p.written
	timed, ok := p.out.(interface{ SetWriteDeadline(time.Time) error })
	if !ok || ctx.Done() == nil {
		_, err = p.out.Write(message)
		return end, err
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(fired)
		_ = timed.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := p.out.Write(message)
	if stop() {
		return end, err
	}
	<-fired
	_ = timed.SetWriteDeadline(time.Time{})
	if err != nil && n > 0 {
		p.close()
	}
	return end, err
}

// settle records that the other end has ended and left a number of bytes unread.
func (p *pipe) settle(unread int) {
	p.writing <- struct{}{}
	p.read.Store(p.written - int64(unread))
	<-p.writing
	p.settled.Store(true)
}

// mayHaveRead reports whether the other end may have read the message that ends at a position.
func (p *pipe) mayHaveRead(end int64) bool { return !p.settled.Load() || p.read.Load() >= end }

// close closes the pipe, and ends a blocked read or write. It may be called more than once.
func (p *pipe) close() error {
	p.once.Do(func() {
		close(p.closed)
		p.closeErr = p.shut()
	})
	return p.closeErr
}

// pipeLink is a link over a pipe to a child, or over a stream that Options.Dial opened.
type pipeLink struct {
	*pipe
	s       *session
	child   *proc.Child // nil for Options.Dial
	free    func()      // called after the child's end; usually nil
	reading sync.WaitGroup
}

func newPipeLink(s *session, p *pipe, child *proc.Child) *pipeLink {
	return &pipeLink{pipe: p, s: s, child: child}
}

// hear reads messages until the stream ends.
func (l *pipeLink) hear() {
	for {
		line, err := l.in.Next()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("the server ended in the middle of a message: %s", excerpt(line))
		}
		if long := wire.LongError(0); errors.As(err, &long) {
			err = fmt.Errorf("the server sent %w", err)
		}
		if err == nil {
			err = l.line(line)
		}
		if err == nil {
			continue
		}
		select {
		case <-l.closed:
			err = io.EOF
		default:
		}
		ended := errors.Is(err, io.EOF)
		l.settleChild(ended)
		if ended { // for a silent end, the outcome of the child says more
			err = nil
		}
		l.s.lose(err)
		return
	}
}

// line handles a message, or a batch as versions before 2025-06-18 allow. An invalid line ends the session,
// because the following lines may be out of step.
func (l *pipeLink) line(line []byte) error {
	m, err := wire.Parse(line)
	if err == nil {
		return l.take(m)
	}
	if batch, bad := wire.ParseBatch(line); errors.Is(err, wire.ErrBatch) && bad == nil {
		for _, m := range batch {
			if err := l.take(m); err != nil {
				return err
			}
		}
		return nil
	}
	if !harmless(line) {
		return fmt.Errorf("the server wrote a line that is not JSON-RPC: %s", excerpt(line))
	}
	l.s.oddLine(line)
	return nil
}

func (l *pipeLink) take(m wire.Message) error {
	if m.Kind() == wire.Reply {
		l.s.heard.Store(true)
		l.s.calls.Deliver(m)
		return nil
	}
	return l.s.hear(m, nil, func(text []byte) error { return l.tell(context.Background(), text) })
}

// harmless reports whether a line that is not JSON-RPC may be ignored: it is JSON, such as a log line on
// the wrong stream, and does not answer a request.
func harmless(line []byte) bool {
	var m struct{ ID, Result, Error json.RawMessage }
	if line[0] != '{' || json.Unmarshal(line, &m) != nil {
		return false
	}
	answer := len(m.Result) > 0 || len(m.Error) > 0
	return !answer || len(m.ID) == 0 || string(m.ID) == "null"
}

const maxExcerpt = 120

// excerpt returns the start of foreign bytes, quoted on one line.
func excerpt(b []byte) string {
	if len(b) > maxExcerpt {
		return fmt.Sprintf("%.*q… (%d bytes)", maxExcerpt, b, len(b))
	}
	return fmt.Sprintf("%q", b)
}

func (l *pipeLink) send(ctx context.Context, x *exchange) (got receipt, err error) {
	line, err := x.text()
	if err != nil {
		return got, err
	}
	var end int64
	got.answer, err = l.s.await(ctx, x, func() (err error) {
		end, err = l.write(ctx, line)
		got.reached = err == nil // otherwise the server got only a part of the message
		return err
	}, l.tell)
	got.reached = got.reached && l.mayHaveRead(end) // whether the server read it is certain only now
	return got, err
}

// await sends an exchange and waits for its response. If ctx ends first, it cancels the request at the
// server.
func (s *session) await(ctx context.Context, x *exchange, send func() error, tell func(context.Context, []byte) error) (*wire.Message, error) {
	cancel := func(text []byte) {
		s.aside(func() { _ = tell(context.Background(), text) }) // otherwise the server continues in vain
	}
	if x.quiet {
		cancel = nil
	}
	m, err := s.calls.Do(ctx, x.id, send, cancel)
	switch {
	case err == nil:
		return &m, nil
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	return nil, err
}

func (l *pipeLink) tell(ctx context.Context, message []byte) error {
	_, err := l.write(ctx, message)
	return err
}

func (l *pipeLink) ready(ctx context.Context, message []byte) error { return l.tell(ctx, message) }
func (l *pipeLink) begin()                                          { l.reading.Go(l.hear) }
func (l *pipeLink) opened() {
	if l.s.modern() {
		ctx, cancel := context.WithCancel(context.Background())
		l.reading.Go(func() { defer cancel(); l.s.follow(ctx) })
		l.reading.Go(func() {
			select {
			case <-l.s.done:
				cancel()
			case <-ctx.Done():
			}
		})
	}
}
func (l *pipeLink) bye() {}
func (l *pipeLink) cut() { _ = l.close() }

func (l *pipeLink) end() {
	if l.child != nil {
		l.child.Stop()
	}
	if l.free != nil {
		l.free()
	}
	l.reading.Wait()
}

func (l *pipeLink) outcome(wait bool) error {
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

// waitExit waits briefly for the exit of a child whose stream has ended.
func (l *pipeLink) waitExit() {
	t := time.NewTimer(500 * time.Millisecond)
	defer t.Stop()
	select {
	case <-l.child.Exited():
	case <-l.closed: // we closed it: the child does not exit before Stop
	case <-t.C:
	}
}

// settleChild determines, after the stream ended, how much a dead child had read.
func (l *pipeLink) settleChild(wait bool) {
	if l.child == nil {
		return
	}
	if wait {
		l.waitExit()
	}
	select {
	case <-l.child.Exited():
		if n, ok := l.child.Unread(); ok {
			l.settle(n)
		}
	default:
	}
}

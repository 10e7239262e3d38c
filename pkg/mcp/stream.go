package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/nonblock"
)

// stream speaks newline-delimited JSON-RPC (MCP specification, basic/transports,
// stdio) over two pipes or any other stream of bytes. It is an [sdk.Connection].
type stream struct {
	in  *bufio.Reader
	out io.Writer
	max int // bytes of one message

	written int64                  // bytes, while writing is held
	settled atomic.Bool            // the reader at the other end is gone
	read    atomic.Int64           // and has read so many bytes
	shut    func() error           // closes in and out
	odd     func(line []byte)      // takes lines that are left out
	take    func(m *envelope) bool // takes answers that the SDK does not wait for; nil takes none
	writing chan struct{}

	queue []jsonrpc.Message // what is left of a batch
	line  []byte            // room for a message that is longer than the reader's buffer

	once     sync.Once
	closed   chan struct{}
	closeErr error
}

func newStream(in io.Reader, out io.Writer, max int, odd func([]byte), shut func() error) *stream {
	return &stream{in: bufio.NewReaderSize(in, 64<<10), out: out, max: max, odd: odd, shut: shut,
		writing: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Connect makes the stream its own transport.
func (s *stream) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// SessionID is empty: a stream is one session.
func (s *stream) SessionID() string { return "" }

// Read returns the next message. What is no message ends the session: after it
// nothing that follows can be trusted to be in step.
func (s *stream) Read(context.Context) (jsonrpc.Message, error) {
	for len(s.queue) == 0 {
		line, err := s.readLine()
		if err != nil {
			select {
			case <-s.closed:
				return nil, io.EOF
			default:
				return nil, err
			}
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if m, ok := split(line); ok && s.take != nil && s.take(&m) {
			continue
		}
		if s.queue, err = decode(line); err != nil {
			s.queue = nil
			if !harmless(line) {
				return nil, fmt.Errorf("the server wrote what is not JSON-RPC: %s", excerpt(line))
			}
			s.odd(line)
		}
	}
	m := s.queue[0]
	s.queue = s.queue[1:]
	return m, nil
}

// harmless reports whether a line that is no JSON-RPC may be left out: it is JSON,
// such as a log line on the wrong stream, and answers no request.
func harmless(line []byte) bool {
	var m struct{ ID, Result, Error json.RawMessage }
	if line[0] != '{' || json.Unmarshal(line, &m) != nil {
		return false
	}
	answer := len(m.Result) > 0 || len(m.Error) > 0
	return !answer || len(m.ID) == 0 || string(m.ID) == "null"
}

// decode reads one message, or the batch that versions before 2025-06-18 allow.
func decode(line []byte) ([]jsonrpc.Message, error) {
	if line[0] != '[' {
		m, err := jsonrpc.DecodeMessage(line)
		return []jsonrpc.Message{m}, err
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(line, &batch); err != nil {
		return nil, err
	}
	var messages []jsonrpc.Message
	for _, raw := range batch {
		m, err := jsonrpc.DecodeMessage(raw)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// readLine returns the next line, which is valid until the next call.
func (s *stream) readLine() ([]byte, error) {
	part, err := s.in.ReadSlice('\n')
	if err == nil {
		return part, nil
	}
	s.line = s.line[:0]
	for {
		if len(s.line)+len(part) > s.max {
			return nil, fmt.Errorf("the server sent a message of more than %d bytes", s.max)
		}
		s.line = append(s.line, part...)
		switch {
		case err == nil:
			line := s.line
			if cap(line) > 1<<20 { // one large message does not hold its room for ever
				s.line = nil
			}
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if len(bytes.TrimSpace(s.line)) > 0 && errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("the server ended in the middle of a message: %s", excerpt(s.line))
			}
			return nil, err
		}
		part, err = s.in.ReadSlice('\n')
	}
}

const maxExcerpt = 120

// excerpt shows the start of foreign bytes on one line.
func excerpt(b []byte) string {
	if len(b) > maxExcerpt {
		return fmt.Sprintf("%.*q… (%d bytes)", maxExcerpt, b, len(b))
	}
	return fmt.Sprintf("%q", b)
}

// Write sends a message. A server that does not read blocks it until ctx ends; a
// message that was cut off by that ends the session.
func (s *stream) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	_, err = s.write(ctx, append(data, '\n'))
	return err
}

// write is Write of a message with the end of its line. It returns where the message
// ends in what was written.
func (s *stream) write(ctx context.Context, data []byte) (end int64, err error) {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-s.closed:
		return 0, io.ErrClosedPipe
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	s.written += int64(len(data))
	end = s.written
	done := 0
	if f, ok := s.out.(*nonblock.File); ok {
		if done = f.TryWrite(data); done == len(data) {
			return end, nil
		}
		data = data[done:]
	}
	timed, ok := s.out.(interface{ SetWriteDeadline(time.Time) error })
	if !ok || ctx.Done() == nil {
		_, err = s.out.Write(data)
		return end, err
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(fired)
		_ = timed.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := s.out.Write(data)
	if stop() {
		return end, err
	}
	<-fired
	_ = timed.SetWriteDeadline(time.Time{})
	if err != nil && done+n > 0 {
		s.Close()
	}
	return end, err
}

// settle notes that the other end is gone and has left so many bytes unread.
func (s *stream) settle(unread int) {
	s.writing <- struct{}{}
	s.read.Store(s.written - int64(unread))
	<-s.writing
	s.settled.Store(true)
}

// mayHaveRead reports whether the other end may have read what ends at a place.
func (s *stream) mayHaveRead(end int64) bool { return !s.settled.Load() || s.read.Load() >= end }

// Close ends the session, and a Read or Write that waits. It may be called again.
func (s *stream) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.closeErr = s.shut()
	})
	return s.closeErr
}

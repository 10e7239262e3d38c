package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/internal/jsontext"
)

// stdin reads the messages of a client line by line. One that is no message is answered
// here with an error (JSON-RPC 2.0, section 5.1) and left out: the SDK would end the
// session, and every call in it.
type stdin struct {
	in   io.Reader
	buf  *bufio.Reader
	out  io.Writer
	take func(line []byte) bool // answers a line in place of the SDK; false when it does not
	last func()                 // is called before the end of in is handed on
	rest []byte                 // of the line that is handed on
	err  error                  // of in, once the lines before it are handed on
}

func newStdin(in io.Reader, out io.Writer) *stdin {
	return &stdin{in: in, buf: bufio.NewReaderSize(in, 64<<10), out: out, take: func([]byte) bool { return false }, last: func() {}}
}

func (s *stdin) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			s.last()
			return 0, s.err
		}
		if s.rest, s.err = s.line(); len(s.rest) == 0 {
			continue
		}
		if code, why := violationOf(s.rest); why != "" {
			s.rest = nil
			if _, err := fmt.Fprintf(s.out, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, why); err != nil {
				return 0, err
			}
		} else if s.take(s.rest) {
			s.rest = nil
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// line reads up to the end of a line. One that is too long is handed on in part, and the
// SDK says so.
func (s *stdin) line() ([]byte, error) {
	var line []byte
	for {
		part, err := s.buf.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxLine {
			if errors.Is(err, bufio.ErrBufferFull) {
				err = nil
			}
			return line, err
		}
	}
}

// violationOf says why a line is no message; "" when it may be one.
func violationOf(line []byte) (code int, why string) {
	text := bytes.TrimSpace(line)
	switch {
	case len(text) == 0 || len(line) > maxLine:
		return 0, ""
	case !jsontext.Valid(text):
		return jsonrpc.CodeParseError, "parse error: the line is not JSON"
	case text[0] == '[' || bytes.Contains(text, []byte(`"jsonrpc"`)):
		return 0, ""
	}
	return jsonrpc.CodeInvalidRequest, "invalid request: the line is not a JSON-RPC 2.0 message"
}

func (s *stdin) Close() error {
	if c, ok := s.in.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// together writes one message at a time.
type together struct {
	mu sync.Mutex
	io.Writer
}

func (t *together) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Writer.Write(p)
}

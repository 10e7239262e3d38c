package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/nonblock"
)

// stdin reads the messages of a client line by line. One that is no message is answered
// here with an error (JSON-RPC 2.0, section 5.1) and left out: the SDK would end the
// session, and every call in it.
type stdin struct {
	ends []io.Closer // are closed at the end
	buf  *bufio.Reader
	out  io.Writer
	take func(line []byte) bool // answers a line in place of the SDK; false when it does not
	last func()                 // is called before the end of in is handed on
	rest []byte                 // of the line that is handed on
	err  error                  // of in, once the lines before it are handed on
}

func newStdin(in io.Reader, out io.Writer) *stdin {
	s := &stdin{out: out, take: func([]byte) bool { return false }, last: func() {}}
	if c, ok := in.(io.Closer); ok {
		s.ends = append(s.ends, c)
	}
	if f, ok := in.(*os.File); ok {
		if n := nonblock.Reopen(f); n != nil {
			in, s.ends = n, append(s.ends, n)
		}
	}
	s.buf = bufio.NewReaderSize(in, 64<<10)
	return s
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
	var err error
	for _, c := range s.ends {
		err = errors.Join(err, c.Close())
	}
	return err
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

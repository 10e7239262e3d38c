package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// inspect shows the session one message as bytes, and returns the bytes that the
// SDK gets; nil when it gets none. What is no message is passed on: the SDK has its
// own words for it. x is the exchange that a response belongs to; nil when there is
// none. reply answers a request of the server.
func (s *session) inspect(data []byte, x *exchange, reply func(id, result json.RawMessage, err *jsonrpc.Error)) ([]byte, error) {
	m, ok := split(data)
	switch {
	case !ok:
	case m.method != "":
		in := incoming{method: m.method, params: m.params, of: x}
		if m.isCall() {
			in.id = bytes.Clone(m.id)
			in.params = bytes.Clone(m.params)
			in.reply = func(result json.RawMessage, err *jsonrpc.Error) { reply(in.id, result, err) }
		}
		method, err := s.receive(in)
		if err != nil {
			s.fail(err)
			return nil, err
		}
		if method == "" {
			return nil, nil
		}
		if method != m.method {
			quoted, err := json.Marshal(method)
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%s}`, m.id, quoted), err
		}
	case m.result != nil || m.failure != nil:
		s.heard.Store(true)
		if x == nil {
			break
		}
		if placeholder := x.take(m.result, m.error()); placeholder != nil {
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.id, placeholder), nil
		}
	}
	return data, nil
}

// isResponse reports whether a message of ours answers a request of the server.
func isResponse(data []byte) bool {
	m, ok := split(data)
	return ok && m.method == ""
}

// events passes a stream of server-sent events on (WHATWG HTML, server-sent
// events) and lets see change or drop the data of each message.
type events struct {
	body io.Closer
	max  int
	see  func(data []byte) ([]byte, error)
	err  error
	// keep counts the bytes of the longest event; nil when nobody does.
	keep func(n int) error
	kept int
	// resumable says that the stream may be taken up again where it broke off: it has ids.
	resumable bool
	*eventBuffers
}

// eventBuffers is the room that a stream needs; most streams carry one event.
type eventBuffers struct {
	in  *bufio.Reader
	raw []byte       // the event as it came
	out bytes.Buffer // what is ready to be read
}

// largeBuffer is what a stream does not leave to the next.
const largeBuffer = 256 << 10

var buffers = sync.Pool{New: func() any { return &eventBuffers{in: bufio.NewReaderSize(nil, 4<<10)} }}

// newEvents returns the stream; see must not keep the bytes that it is given beyond
// what it returns of them, except for parts of them, which stay as they are.
func newEvents(body io.ReadCloser, max int, see func([]byte) ([]byte, error)) *events {
	b := buffers.Get().(*eventBuffers)
	b.in.Reset(body)
	b.out.Reset()
	return &events{body: body, max: max, see: see, eventBuffers: b}
}

// Close ends the stream. It is not called while Read is: the SDK closes what it has read.
func (e *events) Close() error {
	if b := e.eventBuffers; b != nil && cap(b.raw) <= largeBuffer && b.out.Cap() <= largeBuffer {
		e.eventBuffers = nil
		b.in.Reset(nil)
		buffers.Put(b)
	}
	return e.body.Close()
}

func (e *events) Read(p []byte) (int, error) {
	if e.eventBuffers == nil {
		return 0, io.ErrClosedPipe
	}
	for e.out.Len() == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.err = e.next()
	}
	return e.out.Read(p)
}

// next reads one event into out.
func (e *events) next() error {
	e.out.Reset()
	e.raw = e.raw[:0]
	var data []byte
	message := true
	for {
		from := len(e.raw)
		if err := e.line(); err != nil {
			if len(e.raw) > 0 && errors.Is(err, io.EOF) {
				e.out.Write(e.raw)
			}
			return err
		}
		field := bytes.TrimRight(e.raw[from:], "\r\n")
		if len(field) == 0 {
			break
		}
		name, value, _ := bytes.Cut(field, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
		case "id":
			e.resumable = true
		case "event":
			message = len(value) == 0 || string(value) == "message"
		}
	}
	if len(data) == 0 || !message {
		e.out.Write(e.raw)
		return nil
	}
	seen, err := e.see(data)
	if err != nil {
		return err
	}
	if len(seen) == len(data) && &seen[0] == &data[0] {
		e.out.Write(e.raw)
		return nil
	}
	// The other fields stay: id and retry are for the SDK even when the message is not.
	for line := range bytes.Lines(e.raw) {
		if field := bytes.TrimRight(line, "\r\n"); len(field) > 0 && !bytes.HasPrefix(field, []byte("data")) {
			e.out.Write(field)
			e.out.WriteByte('\n')
		}
	}
	if seen != nil {
		e.out.WriteString("data: ")
		e.out.Write(seen)
		e.out.WriteByte('\n')
	}
	e.out.WriteByte('\n')
	return nil
}

// line appends the next line with its end to raw.
func (e *events) line() error {
	from := len(e.raw)
	for {
		part, err := e.in.ReadSlice('\n')
		if len(e.raw)+len(part) > e.max {
			return fmt.Errorf("the server sent a message of more than %d bytes", e.max)
		}
		e.raw = append(e.raw, part...)
		if n := len(e.raw) - e.kept; n > 0 && e.keep != nil {
			if err := e.keep(n); err != nil {
				return err
			}
			e.kept += n
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(e.raw) > from && errors.Is(err, io.EOF) {
			e.raw = append(e.raw, '\n')
			return nil
		}
		return err
	}
}

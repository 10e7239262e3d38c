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

// inspect shows the session one message that the SDK reads, and returns what the SDK gets
// of it; nil when it gets nothing. What is no message is passed on: the SDK has its own
// words for it. reply answers a request of the server.
func (s *session) inspect(data []byte, reply func(id, result json.RawMessage, err *jsonrpc.Error)) ([]byte, error) {
	m, ok := split(data)
	switch {
	case !ok:
	case m.method != "":
		if forSDK, err := s.hear(&m, nil, reply); err != nil || !forSDK {
			return nil, err
		}
	case m.result != nil || m.failure != nil:
		s.heard.Store(true)
		s.hello.answer.Store(&answer{bytes.Clone(m.result), m.error()})
	}
	return data, nil
}

// hear takes a message of the server that is no answer. x is the exchange in whose stream
// it came; nil when there is none.
func (s *session) hear(m *envelope, x *exchange, reply func(id, result json.RawMessage, err *jsonrpc.Error)) (forSDK bool, err error) {
	in := incoming{method: m.method, params: m.params, of: x}
	if m.isCall() {
		in.id = bytes.Clone(m.id)
		in.params = bytes.Clone(m.params)
		in.reply = func(result json.RawMessage, err *jsonrpc.Error) { reply(in.id, result, err) }
	}
	if forSDK, err = s.receive(in); err != nil {
		s.fail(err)
	}
	return forSDK, err
}

// events passes a stream of server-sent events on (WHATWG HTML, server-sent
// events) and lets see change or drop the data of each message.
type events struct {
	body io.ReadCloser
	max  int
	see  func(data []byte) ([]byte, error)
	err  error
	// keep counts the bytes of the longest event; nil when nobody does.
	keep func(n int) error
	kept int
	// given says that raw is the data of an event, and is written to no more.
	given bool
	from  *bufio.Reader // in or wide
	*eventBuffers
}

// eventBuffers is the room that a stream needs; most streams carry one event.
type eventBuffers struct {
	in   *bufio.Reader
	wide *bufio.Reader // of in, for what is long: it reads more of the connection at once
	raw  []byte        // the event as it came
	out  bytes.Buffer  // what is ready to be read
	last int           // how large the last large event was, as the next often is
}

const (
	// largeBuffer is what a stream does not leave to the next.
	largeBuffer = 256 << 10
	// longLine is read with the wide reader.
	longLine = 32 << 10
)

var buffers = sync.Pool{New: func() any { return &eventBuffers{in: bufio.NewReaderSize(nil, 4<<10)} }}

// newEvents returns the stream; see must not keep the bytes that it is given beyond
// what it returns of them, except for parts of them, which stay as they are.
func newEvents(body io.ReadCloser, max int, see func([]byte) ([]byte, error)) *events {
	b := buffers.Get().(*eventBuffers)
	b.in.Reset(body)
	b.out.Reset()
	return &events{body: body, max: max, see: see, from: b.in, eventBuffers: b}
}

// Close ends the stream. It is not called while Read is: the SDK closes what it has read.
func (e *events) Close() error {
	if b := e.eventBuffers; b != nil && b.out.Cap() <= largeBuffer {
		if e.given || cap(b.raw) > largeBuffer {
			b.raw = nil
		}
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

// tooLongError says that a message was longer than so many bytes.
type tooLongError int

func (e tooLongError) Error() string {
	return fmt.Sprintf("the server sent a message of more than %d bytes", int(e))
}

// event is one server-sent event.
type event struct {
	data      []byte // nil when there is none; it is nobody else's
	id, retry string
	named     bool // for something else than a message
}

// event reads the next event, and raw becomes what it came as. At the end of the stream raw
// holds what is left of it.
func (e *events) event() (ev event, err error) {
	if e.given {
		e.raw, e.given = nil, false
	}
	e.raw = e.raw[:0]
	defer func() {
		if len(e.raw) > longLine {
			e.last = len(e.raw) + longLine
		}
	}()
	for {
		from := len(e.raw)
		if err := e.line(); err != nil {
			return event{}, err
		}
		field := bytes.TrimRight(e.raw[from:], "\r\n")
		if len(field) == 0 {
			return ev, nil
		}
		name, value, _ := bytes.Cut(field, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			switch {
			case ev.data != nil:
				ev.data = append(append(ev.data, '\n'), value...)
			case len(value) > largeBuffer/2:
				ev.data, e.given = value[:len(value):len(value)], true
			default:
				ev.data = append(ev.data, value...)
			}
		case "id":
			ev.id = string(value)
		case "retry":
			ev.retry = string(value)
		case "event":
			ev.named = len(value) > 0 && string(value) != "message"
		}
	}
}

// next reads one event into out.
func (e *events) next() error {
	e.out.Reset()
	ev, err := e.event()
	if err != nil {
		if len(e.raw) > 0 && errors.Is(err, io.EOF) {
			e.out.Write(e.raw)
		}
		return err
	}
	if len(ev.data) == 0 || ev.named {
		e.out.Write(e.raw)
		return nil
	}
	seen, err := e.see(ev.data)
	if err != nil {
		return err
	}
	if len(seen) == len(ev.data) && &seen[0] == &ev.data[0] {
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
		part, err := e.from.ReadSlice('\n')
		if len(e.raw)+len(part) > e.max {
			return tooLongError(e.max)
		}
		if len(e.raw)+len(part) > cap(e.raw) {
			e.grow(len(part))
		}
		e.raw = append(e.raw, part...)
		if n := len(e.raw) - e.kept; n > 0 && e.keep != nil {
			if err := e.keep(n); err != nil {
				return err
			}
			e.kept += n
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(e.raw) > longLine && e.from == e.in {
				e.widen()
			}
			continue
		}
		if len(e.raw) > from && errors.Is(err, io.EOF) {
			e.raw = append(e.raw, '\n')
			return nil
		}
		return err
	}
}

// grow makes room for n bytes more. What append does would allocate six times of what is large.
func (e *events) grow(n int) {
	size := max(2*cap(e.raw), len(e.raw)+n)
	if cap(e.raw) > longLine && size < e.last && e.last <= 16*cap(e.raw) {
		size = e.last
	}
	e.raw = append(make([]byte, 0, size), e.raw...)
}

// widen has the rest of the stream read in larger pieces.
func (e *events) widen() {
	if e.wide == nil {
		e.wide = bufio.NewReaderSize(nil, 64<<10)
	}
	e.wide.Reset(e.in)
	e.from = e.wide
}

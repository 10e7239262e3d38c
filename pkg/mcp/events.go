package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// events reads a stream of server-sent events (WHATWG HTML, server-sent events).
type events struct {
	body io.ReadCloser
	max  int
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
	last int           // how large the last large event was, as the next often is
}

const (
	// largeBuffer is what a stream does not leave to the next.
	largeBuffer = 256 << 10
	// longLine is read with the wide reader.
	longLine = 32 << 10
)

var buffers = sync.Pool{New: func() any { return &eventBuffers{in: bufio.NewReaderSize(nil, 4<<10)} }}

func newEvents(body io.ReadCloser, max int) *events {
	b := buffers.Get().(*eventBuffers)
	b.in.Reset(body)
	return &events{body: body, max: max, from: b.in, eventBuffers: b}
}

// Close ends the stream. It is not called while event is.
func (e *events) Close() error {
	if b := e.eventBuffers; b != nil {
		if e.given || cap(b.raw) > largeBuffer {
			b.raw = nil
		}
		e.eventBuffers = nil
		b.in.Reset(nil)
		buffers.Put(b)
	}
	return e.body.Close()
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

package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// events reads a stream of server-sent events (WHATWG HTML, server-sent events).
type events struct {
	io.Closer
	in   *bufio.Reader
	max  int               // bytes of one event
	size int               // bytes of the current event
	keep func(n int) error // counts the bytes of the longest event; nil without a budget
	kept int
}

func newEvents(body io.ReadCloser, max int) *events {
	return &events{Closer: body, in: bufio.NewReader(body), max: max}
}

// event is one server-sent event.
type event struct {
	data      []byte // nil if the event has no data; the event owns it
	id, retry string
	named     bool // the event is not a message
}

// event reads the next event.
func (e *events) event() (ev event, err error) {
	e.size = 0
	for {
		line, err := e.line()
		if err != nil {
			return event{}, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return ev, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if ev.data == nil {
				ev.data = value
			} else {
				ev.data = append(append(ev.data, '\n'), value...)
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

// line reads the next line including its line end, which the last line may lack.
func (e *events) line() (line []byte, err error) {
	for {
		part, err := e.in.ReadSlice('\n')
		if e.size += len(part); e.size > e.max {
			return nil, wire.LongError(e.max)
		}
		if len(line)+len(part) > cap(line) { // append alone would allocate six times the size of a long line
			line = slices.Grow(line, len(line)+len(part))
		}
		line = append(line, part...)
		if n := e.size - e.kept; n > 0 && e.keep != nil {
			if err := e.keep(n); err != nil {
				return nil, err
			}
			e.kept += n
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 && errors.Is(err, io.EOF) {
			err = nil
		}
		return line, err
	}
}

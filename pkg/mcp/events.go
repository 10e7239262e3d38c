package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// events reads a stream of server-sent events (WHATWG HTML, server-sent events).
type events struct {
	body io.ReadCloser
	in   *bufio.Reader // nil once the stream is closed
	max  int           // bytes of one event
	size int           // bytes of this event until now
	// keep counts the bytes of the longest event; nil when nobody does.
	keep func(n int) error
	kept int
}

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 32<<10) }}

func newEvents(body io.ReadCloser, max int) *events {
	in := readers.Get().(*bufio.Reader)
	in.Reset(body)
	return &events{body: body, in: in, max: max}
}

// Close ends the stream. It is not called while event is.
func (e *events) Close() error {
	if e.in != nil {
		e.in.Reset(nil)
		readers.Put(e.in)
		e.in = nil
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

// line reads the next line with its end, which the last may lack.
func (e *events) line() (line []byte, err error) {
	for {
		part, err := e.in.ReadSlice('\n')
		if e.size += len(part); e.size > e.max {
			return nil, tooLongError(e.max)
		}
		if len(line)+len(part) > cap(line) { // what append does would allocate six times of what is large
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

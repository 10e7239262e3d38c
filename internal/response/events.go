// Package response reads what HTTP responses of many APIs have in common: streams of server-sent events, and when a
// request may be sent again.
package response

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// Events reads a stream of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
type Events struct {
	in   *bufio.Reader
	grow func(size int) error
	size int // bytes of the current event
}

// NewEvents returns the events of a stream. While an event is read, grow gets its number of bytes; an error of grow ends
// the stream. A nil grow sets no limit.
func NewEvents(stream io.Reader, grow func(size int) error) *Events {
	if grow == nil {
		grow = func(int) error { return nil }
	}
	return &Events{in: bufio.NewReader(stream), grow: grow}
}

// Event is one event.
type Event struct {
	Data            []byte // nil if the event has no data; the event owns it
	ID, Retry, Name string
}

// Next reads the next event. The error is io.EOF at the end of the stream, where an event without an end is dropped.
func (e *Events) Next() (ev Event, err error) {
	e.size = 0
	for {
		line, err := e.line()
		if err != nil {
			return Event{}, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return ev, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if ev.Data == nil {
				ev.Data = value
			} else {
				ev.Data = append(append(ev.Data, '\n'), value...)
			}
		case "id":
			ev.ID = string(value)
		case "retry":
			ev.Retry = string(value)
		case "event":
			ev.Name = string(value)
		}
	}
}

// line reads the next line including its line end, which the last line may lack.
func (e *Events) line() (line []byte, err error) {
	for {
		part, err := e.in.ReadSlice('\n')
		e.size += len(part)
		if err := e.grow(e.size); err != nil {
			return nil, err
		}
		if len(line)+len(part) > cap(line) { // append alone would allocate six times the size of a long line
			line = slices.Grow(line, len(line)+len(part))
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 && errors.Is(err, io.EOF) {
			err = nil
		}
		return line, err
	}
}

package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// inspect shows the session one message as bytes, and returns the bytes that the
// SDK gets; nil when it gets none. What is no message is passed on: the SDK has its
// own words for it. x is the exchange that a response belongs to; nil when there is none.
func (s *session) inspect(data []byte, x *exchange) ([]byte, error) {
	m, ok := split(data)
	switch {
	case !ok:
	case m.method != "":
		method, err := s.incomingRequest(m.method, m.params, m.isCall())
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
		if x == nil || m.result != nil && !json.Valid(m.result) {
			break
		}
		if standIn := x.take(m.result, m.error()); standIn != nil {
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.id, standIn), nil
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
	in   *bufio.Reader
	body io.Closer
	max  int
	see  func(data []byte) ([]byte, error)

	out bytes.Buffer // what is ready to be read
	err error
}

func newEvents(body io.ReadCloser, max int, see func([]byte) ([]byte, error)) io.ReadCloser {
	return &events{in: bufio.NewReaderSize(body, 4<<10), body: body, max: max, see: see}
}

func (e *events) Close() error { return e.body.Close() }

func (e *events) Read(p []byte) (int, error) {
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
	var raw, data []byte // the event as it came, and its data
	message := true
	for {
		line, err := e.line(len(raw))
		if err != nil {
			if len(raw) > 0 && errors.Is(err, io.EOF) {
				e.out.Write(raw)
			}
			return err
		}
		raw = append(raw, line...)
		field := bytes.TrimRight(line, "\r\n")
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
		case "event":
			message = len(value) == 0 || string(value) == "message"
		}
	}
	if len(data) == 0 || !message {
		e.out.Write(raw)
		return nil
	}
	seen, err := e.see(data)
	if err != nil {
		return err
	}
	if len(seen) == len(data) && &seen[0] == &data[0] {
		e.out.Write(raw)
		return nil
	}
	// The other fields stay: id and retry are for the SDK even when the message is not.
	for line := range bytes.Lines(raw) {
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

// line returns the next line with its end; the event has had so many bytes before.
func (e *events) line(had int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.in.ReadSlice('\n')
		if had+len(line)+len(part) > e.max {
			return nil, fmt.Errorf("the server sent a message of more than %d bytes", e.max)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			if len(line) > 0 && errors.Is(err, io.EOF) {
				return append(line, '\n'), nil
			}
			return line, err
		}
	}
}

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// caller is one connection of an MCP client over streamable HTTP that does as little work as possible. It sends
// prepared bytes, and parses a response only to find its end and whether it is a result.
type caller struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	answer  []byte
}

const sessionHeader = "Mcp-Session-Id"

// wire has the data that a client of one version of the protocol sends with each request.
type wire struct {
	version string
	session string
}

// openWire makes the requests that a client of the version makes before its first call.
func openWire(t testing.TB, at, version string) wire {
	t.Helper()
	w := wire{version: version}
	if version >= "2026-07-28" {
		return w
	}
	send := func(body string) *http.Response {
		req, err := http.NewRequest(http.MethodPost, at, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if w.session != "" {
			req.Header.Set(sessionHeader, w.session)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 300 {
			t.Fatalf("%s: %d %s %v", body, res.StatusCode, text, err)
		}
		return res
	}
	w.session = send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}`).Header.Get(sessionHeader)
	if w.session == "" {
		t.Fatal("no session")
	}
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

// request returns a whole HTTP request that calls a tool. Concurrent requests of one session need different ids.
func (w wire) request(at string, id int, tool, args string) []byte {
	to, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	params, head := fmt.Sprintf(`"name":%q,"arguments":%s`, tool, args), sessionHeader+": "+w.session
	if w.session == "" {
		params += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + w.version + `","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
		head = "Mcp-Method: tools/call\r\nMcp-Name: " + tool
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, id, params)
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Protocol-Version: %s\r\n%s\r\nContent-Length: %d\r\n\r\n%s",
		to.RequestURI(), to.Host, w.version, head, len(body), body)
}

// newCaller opens a connection for one request, which is sent repeatedly.
func newCaller(t testing.TB, at string, request []byte) *caller {
	t.Helper()
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", to.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &caller{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), request: request}
}

// call sends the request and returns the body of the response, which is valid until the next call. It fails unless the
// body is a result without an error.
func (c *caller) call() ([]byte, error) {
	if err := c.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return nil, err
	}
	if err := c.read(); err != nil {
		return nil, err
	}
	if !bytes.Contains(c.answer, []byte(`"result"`)) || bytes.Contains(c.answer, []byte(`"isError":true`)) {
		return nil, fmt.Errorf("no result: %.300s", c.answer)
	}
	return c.answer, nil
}

func (c *caller) read() error {
	status, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	ok := bytes.HasPrefix(status, []byte("HTTP/1.1 200 "))
	first := string(status[:min(len(status), 60)])
	length, chunked := -1, false
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			chunked = true
		}
	}
	c.answer = c.answer[:0]
	switch {
	case chunked:
		for {
			line, err := c.in.ReadSlice('\n')
			if err != nil {
				return err
			}
			n, err := strconv.ParseUint(string(bytes.TrimRight(line, "\r\n")), 16, 31)
			if err != nil {
				return err
			}
			if err := c.take(int(n)); err != nil {
				return err
			}
			if _, err := c.in.Discard(2); err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
	case length >= 0:
		if err := c.take(length); err != nil {
			return err
		}
	default:
		return errors.New("an answer without a length")
	}
	if !ok {
		return fmt.Errorf("%s: %.300s", strings.TrimSpace(first), c.answer)
	}
	return nil
}

func (c *caller) take(n int) error {
	from := len(c.answer)
	if cap(c.answer) < from+n {
		c.answer = append(make([]byte, 0, 2*(from+n)), c.answer...)
	}
	c.answer = c.answer[:from+n]
	_, err := io.ReadFull(c.in, c.answer[from:])
	return err
}

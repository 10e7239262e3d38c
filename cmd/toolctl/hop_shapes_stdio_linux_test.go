package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
)

// stdioShapes measures the clients of the other SDKs over stdin and stdout, where they differ only in the order of the
// members of a message. One client makes all calls.
func stdioShapes(b *testing.B, bin string) {
	r := overStdio(b, bin)
	for _, s := range shapes {
		programs := r.commands(b)
		var clients [3]*stdioClient
		for i, cmd := range programs {
			clients[i] = s.start(b, cmd)
		}
		c := compared(programs, func(route, size, inFlight int) (all []func() error) {
			for id := range inFlight {
				all = append(all, clients[route].caller(s.line(id+1, fmt.Sprintf(`{"size":%d,"note":"a call"}`, size)), id+1))
			}
			return all
		})
		c.run(b, "stdio-"+s.name, 100, 1<<10, 100<<10, 1<<20)
	}
}

// line returns the message of a call.
func (s *shape) line(id int, args string) []byte { return fmt.Appendf(nil, s.body+"\n", id, args) }

// stdioClient is a client over stdin and stdout that does as little work as possible.
type stdioClient struct {
	in io.Writer

	mu      sync.Mutex
	waiting map[int]chan []byte // by id
	ended   chan struct{}       // closed at the end of the output
}

// start starts a program and begins a session with it, if the version has sessions.
func (s *shape) start(t testing.TB, cmd *exec.Cmd) *stdioClient {
	t.Helper()
	in, out := startPiped(t, cmd)
	c := &stdioClient{in: in, waiting: map[int]chan []byte{}, ended: make(chan struct{})}
	go c.read(out)
	t.Cleanup(func() {
		in.Close()
		<-c.ended
		_ = cmd.Wait()
	})
	if s.version < "2026-07-28" {
		hello := fmt.Sprintf(`{"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"load","version":"1"}},"jsonrpc":"2.0","id":0}`+"\n", s.version)
		if err := c.caller([]byte(hello), 0)(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, `{"method":"notifications/initialized","jsonrpc":"2.0"}`)
	}
	return c
}

// read passes each response to the call that waits for it.
func (c *stdioClient) read(out io.Reader) {
	defer close(c.ended)
	for lines := bufio.NewReaderSize(out, 64<<10); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		_, rest, _ := bytes.Cut(line, []byte(`"id":`))
		digits := rest[:len(rest)-len(bytes.TrimLeft(rest, "0123456789"))]
		id, err := strconv.Atoi(string(digits))
		c.mu.Lock()
		came := c.waiting[id]
		c.mu.Unlock()
		if err == nil && came != nil {
			came <- line // has room, because only one call at a time uses an id
		}
	}
}

// caller returns a function that sends a message with the given id and waits for its response.
func (c *stdioClient) caller(message []byte, id int) func() error {
	came := make(chan []byte, 1)
	return func() error {
		c.mu.Lock()
		c.waiting[id] = came
		_, err := c.in.Write(message) // under mu: one message at a time
		c.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case line := <-came:
			if !bytes.Contains(line, []byte(`"result"`)) || bytes.Contains(line, []byte(`"isError":true`)) {
				return fmt.Errorf("no result: %.300s", line)
			}
			return nil
		case <-c.ended:
			return errors.New("the program ended")
		}
	}
}

// TestStdioShapes checks that serve accepts each shape over stdin and stdout.
func TestStdioShapes(t *testing.T) {
	file := echoTool(t)
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			cmd := again(t, "toolctl", "serve", "-f", file)
			cmd.Stderr = os.Stderr
			if err := s.start(t, cmd).caller(s.line(1, `{"size":100}`), 1)(); err != nil {
				t.Error(err)
			}
		})
	}
}

package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// inMemory listens for connections without a buffer, within a synctest bubble.
type inMemory struct {
	conns chan net.Conn
	ended chan struct{}
}

func (l *inMemory) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *inMemory) Close() error   { close(l.ended); return nil }
func (l *inMemory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (l *inMemory) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// ask sends a request and returns the response, whose body is read unless it is a stream.
func (l *inMemory) ask(t *testing.T, c *http.Client, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodGet && path == "/mcp" {
		return res, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

// TestStopping checks that a stopping server announces it at once, accepts calls during its delay, and then
// ends its streams and lets calls end, within the time limit whatever clients and tools do.
func TestStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay, drain = 5 * time.Second, 10 * time.Second
		l := &inMemory{make(chan net.Conn), make(chan struct{})}
		c := catalogOf(offer("", "do"), offer("", "hang"), offer("", "large"))
		c.do = func(ctx context.Context, call v1.Call) (v1.Result, error) {
			switch call.Tool {
			case "default/hang":
				<-ctx.Done()
				return v1.Result{}, ctx.Err()
			case "default/large":
				return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)}, nil
			}
			return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`"done"`)}, nil
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() {
			served <- server.New(c, server.Options{ShutdownDelay: delay, DrainTimeout: drain}).Serve(ctx, l, server.HTTPOptions{})
		}()
		transport := &http.Transport{DialContext: l.dial}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		res, _ := l.ask(t, client, http.MethodPost, "/mcp", initialize)
		session := []string{"Mcp-Session-Id", res.Header.Get("Mcp-Session-Id")}
		call := func(tool string) string {
			return `{"jsonrpc":"2.0","id":"` + tool + `","method":"tools/call","params":{"name":"` + tool + `"}}`
		}
		stream, _ := l.ask(t, client, http.MethodGet, "/mcp", "", session...)
		streamed := make(chan time.Time, 1)
		go func() {
			_, _ = io.Copy(io.Discard, stream.Body)
			stream.Body.Close()
			streamed <- time.Now()
		}()
		hung := make(chan string, 1)
		go func() {
			_, text := l.ask(t, client, http.MethodPost, "/mcp", call("hang"), session...)
			hung <- text
		}()
		deaf, err := l.dial(ctx, "", "") // which reads no answer
		if err != nil {
			t.Fatal(err)
		}
		defer deaf.Close()
		body := call("large")
		if _, err := io.WriteString(deaf, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"+
			session[0]+": "+session[1]+"\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body); err != nil {
			t.Fatal(err)
		}
		if res, _ := l.ask(t, client, http.MethodGet, "/readyz", ""); res.StatusCode != http.StatusOK {
			t.Errorf("/readyz before: %d", res.StatusCode)
		}
		began := time.Now()
		stop()
		synctest.Wait()
		if res, text := l.ask(t, client, http.MethodGet, "/readyz", ""); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "the server is stopping") {
			t.Errorf("/readyz: %d %s", res.StatusCode, text)
		}
		time.Sleep(delay - time.Millisecond)
		if res, text := l.ask(t, client, http.MethodPost, "/mcp", call("do"), session...); res.StatusCode != http.StatusOK || !strings.Contains(text, "done") || !res.Close {
			t.Errorf("a call within the delay: %d %s, and the connection is closed: %v", res.StatusCode, text, res.Close)
		}
		if after := (<-streamed).Sub(began); after != delay {
			t.Errorf("the stream ended after %s", after)
		}
		synctest.Wait()
		if _, err := l.dial(ctx, "", ""); err == nil {
			t.Error("it takes connections after the delay")
		}
		if text := <-hung; !strings.Contains(text, "the tool may have run") {
			t.Errorf("the call that hangs: %s", text)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < delay+drain || took > delay+drain+2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

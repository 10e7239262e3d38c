package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/mcptest"
)

// elsewhere runs its server in another process, which another Upstreams represents.
type elsewhere struct {
	t      *testing.T
	owner  *mcp.Upstreams
	relays sync.WaitGroup

	mu   sync.Mutex
	last net.Conn
}

func (e *elsewhere) Hold(ctx context.Context, server v1.Key, _ func()) (io.ReadWriteCloser, error) {
	relay, err := e.owner.Relay(ctx, server)
	if err != nil {
		return nil, err
	}
	ours, theirs := net.Pipe()
	e.relays.Go(func() { relay.Serve(context.Background(), theirs) })
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = ours
	return ours, nil
}

func (e *elsewhere) Free(v1.Key) { e.t.Error("the server was never here") }

// here runs every server in this process.
type here struct{}

func (here) Hold(context.Context, v1.Key, func()) (io.ReadWriteCloser, error) { return nil, nil }
func (here) Free(v1.Key)                                                      {}

func TestRelay(t *testing.T) {
	s := mcptest.NewServer("s")
	defer s.Close()
	s.AddTool(mcptest.Tool{Name: "t", InputSchema: `{"type":"object","required":["a"]}`}, mcptest.Response{Handler: func(_ context.Context, args json.RawMessage) mcptest.Response {
		return mcptest.JSON(`{"got":` + string(args) + `}`)
	}})
	s.AddTool(mcptest.Tool{Name: "refused"}, mcptest.Response{Code: -32000, Text: "busy"})
	entered, left := make(chan bool, 1), make(chan bool, 1)
	s.AddTool(mcptest.Tool{Name: "long"}, mcptest.Response{Handler: func(ctx context.Context, _ json.RawMessage) mcptest.Response {
		entered <- true
		<-ctx.Done()
		left <- true
		return mcptest.Text("late")
	}})
	m := s.Manifest()
	m.Spec.URL, m.Spec.Command, m.Spec.Replicas = "", "true", v1.ReplicasOne
	owner := mcp.NewUpstreams([]*v1.MCPServer{m}, mcp.Options{Dial: s.Dial, Single: here{}})
	defer owner.Close()
	e := &elsewhere{t: t, owner: owner}
	changes := make(chan v1.Key, 10)
	up := mcp.NewUpstreams([]*v1.MCPServer{m}, mcp.Options{Single: e, OnChange: func(k v1.Key) { changes <- k }})
	defer e.relays.Wait()
	defer up.Close()
	key := m.Key()
	if st := up.Discover(t.Context())[0]; !st.Ready || len(st.Tools) != 3 || st.ServerName != "s" {
		t.Fatalf("%+v", st)
	}
	big := `{"a":9007199254740993,"b":" ` + "\u2028" + `"}`
	want, err := owner.Call(t.Context(), key, "t", []byte(big), false)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := up.Call(t.Context(), key, "t", []byte(big), false); err != nil || string(res.Content) != string(want.Content) {
		t.Errorf("%s, %v, want %s", res.Content, err, want.Content)
	}
	var refused *v1.MCPError
	if _, err := up.Call(t.Context(), key, "refused", nil, false); !errors.As(err, &refused) || refused.Code != -32000 || refused.Message != "busy" {
		t.Errorf("what the server refuses: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	if _, err := up.Call(ctx, key, "long", nil, false); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-left
	s.AddTool(mcptest.Tool{Name: "new"}, mcptest.Text("new"))
	<-changes
	if st, _ := up.State(key); len(st.Tools) != 4 {
		t.Errorf("%d tools", len(st.Tools))
	}
	// A broken stream ends the running requests; the next call opens another stream.
	go func() {
		<-entered
		e.mu.Lock()
		defer e.mu.Unlock()
		_ = e.last.Close()
	}()
	if _, err := up.Call(t.Context(), key, "long", nil, false); !errors.As(err, &refused) || refused.Code != 0 {
		t.Errorf("a lost stream: %v", err)
	}
	<-left
	if res, err := up.Call(t.Context(), key, "new", nil, false); err != nil || string(res.Content) != `"new"` {
		t.Errorf("%s, %v", res.Content, err)
	}
	// Input that does not follow the relay's protocol is refused and causes no harm.
	for _, text := range []string{"", "\n", "x\n", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}` + "\n", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}` + "\n",
		`{"jsonrpc":"2.0","id":1,"method":"a\"b"}` + "\n", `{"jsonrpc":"2.0","id":"q1","result":{}}` + "\n", `{"jsonrpc":"2.0","method":"notifications/cancelled"}` + "\n"} {
		stream, err := e.Hold(t.Context(), key, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, stream) }()
		_, _ = io.WriteString(stream, text) // the stream may be closed
		_ = stream.Close()
	}
	if res, err := up.Call(t.Context(), key, "new", nil, false); err != nil {
		t.Errorf("%s, %v", res.Content, err)
	}
}

// leased runs every server in this process until its lease ends.
type leased struct {
	held  func(lost func())
	freed chan bool
}

func (l *leased) Hold(_ context.Context, _ v1.Key, lost func()) (io.ReadWriteCloser, error) {
	l.held(lost)
	return nil, nil
}
func (l *leased) Free(v1.Key) { l.freed <- true }

// started is called when the child of a server logs that it has started.
type started func()

func (f started) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("msg=started")) {
		f()
	}
	return len(line), nil
}

// TestLostWhileStarting checks that a server is ended at once if its lease ends before its first response,
// because another process may start its own.
func TestLostWhileStarting(t *testing.T) {
	for _, late := range []bool{true, false} {
		t.Run(fmt.Sprint("the child runs: ", late), func(t *testing.T) {
			m := stdio("s", "deaf:noisy")
			m.Spec.Replicas, m.Spec.ConnectTimeoutMS = v1.ReplicasOne, 600_000
			l := &leased{freed: make(chan bool, 1)}
			var lose func()
			l.held = func(lost func()) {
				if lose = lost; !late {
					lose()
				}
			}
			log := logger(started(func() { lose() }))
			up := open(t, mcp.Options{Single: l, Logger: log}, m)
			if _, err := up.Call(t.Context(), key("s"), "t", nil, false); err == nil || !strings.Contains(v1.Detailed(err), "the lease of this replica ended") {
				t.Errorf("the call: %v", err)
			}
			<-l.freed
		})
	}
}

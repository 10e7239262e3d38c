package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// served is a "toolctl serve --http" that runs in the process of the test.
type served struct {
	url   string
	stop  context.CancelFunc
	ended chan int

	mu    sync.Mutex
	lines []string
	past  []string      // lines up to the last one that wait returned
	more  chan struct{} // holds a token when lines has grown
}

// serveHTTP runs toolctl serve --http on a free port until the test ends.
func serveHTTP(t testing.TB, args ...string) *served {
	t.Helper()
	s := startLogged(t, append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
	var at struct{ URL string }
	if err := json.Unmarshal([]byte(s.wait(t, `"msg":"listening"`)), &at); err != nil {
		t.Fatal(err)
	}
	s.url = at.URL
	return s
}

// startLogged starts a command that logs until it is stopped.
func startLogged(t testing.TB, args ...string) *served {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &served{stop: stop, ended: make(chan int, 1), more: make(chan struct{}, 1)}
	r, w := io.Pipe()
	go func() {
		s.ended <- run(ctx, args, strings.NewReader(""), io.Discard, w)
		w.Close()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		for in := bufio.NewScanner(r); in.Scan(); {
			s.mu.Lock()
			s.lines = append(s.lines, in.Text())
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
		}
		close(s.more)
	}()
	t.Cleanup(func() {
		stop()
		if code := <-s.ended; code != exitOK {
			t.Errorf("toolctl %s: exit code %d:\n%s", strings.Join(args, " "), code, strings.Join(s.lines, "\n"))
		}
		<-read
	})
	return s
}

// wait returns the next line of the log that contains text.
func (s *served) wait(t testing.TB, text string) string {
	t.Helper()
	for {
		s.mu.Lock()
		for i, l := range s.lines {
			if strings.Contains(l, text) {
				s.past = append(s.past, s.lines[:i+1]...)
				s.lines = s.lines[i+1:]
				s.mu.Unlock()
				return l
			}
		}
		s.mu.Unlock()
		if _, ok := <-s.more; !ok {
			t.Fatalf("the log ended without %s", text)
		}
	}
}

// client connects with a version of the protocol.
func (s *served) client(t testing.TB, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(context.Background(),
		&sdk.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: transport}, DisableStandaloneSSE: o == nil},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close(); transport.CloseIdleConnections() })
	return cs
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func toolNames(t testing.TB, cs *sdk.ClientSession) string {
	t.Helper()
	res, err := cs.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range res.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

const mockTool = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: %s, labels: {team: %[1]s}}
spec: {description: A mock, input_schema: {type: object}, mock_result: {is: %[1]s}}
`

// TestServeCountsExactly checks that exactly as many calls as the policy allows reach the upstream, with any number of
// clients. Clients of 2026-07-28 without a token share one session.
func TestServeCountsExactly(t *testing.T) {
	t.Parallel()
	const limit, clients, each = 1000, 64, 20
	var reached atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer upstream.Close()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "tools.yaml"), fmt.Sprintf(`
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: hit}
spec: {description: Counts, input_schema: {type: object}, http: {url: "%s", method: POST}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: caps}
spec: {max_total_tool_calls: %d}
`, upstream.URL, limit))
	for _, where := range []string{"memory", "store"} {
		t.Run(where, func(t *testing.T) {
			reached.Store(0)
			args := []string{"-f", dir, "--allow-private-network"}
			if where == "store" {
				args = append(args, "--store", filepath.Join(t.TempDir(), "state.db"))
			}
			s := serveHTTP(t, args...)
			var allowed, refused atomic.Int64
			var group sync.WaitGroup
			for range clients {
				cs := s.client(t, "2026-07-28", nil)
				group.Go(func() {
					for range each {
						res, err := cs.CallTool(context.Background(), &sdk.CallToolParams{Name: "hit"})
						switch {
						case err != nil:
							t.Error(err)
						case !res.IsError:
							allowed.Add(1)
						default:
							refused.Add(1)
							text := res.Content[0].(*sdk.TextContent).Text
							if !strings.Contains(text, `rule max_total_tool_calls`) || !strings.Contains(text, "(limit 1000, used 1000)") {
								t.Errorf("got %s", text)
							}
						}
					}
				})
			}
			group.Wait()
			if reached.Load() != limit || allowed.Load() != limit || refused.Load() != clients*each-limit {
				t.Errorf("%d reached the upstream, %d were allowed, %d refused", reached.Load(), allowed.Load(), refused.Load())
			}
			if where == "memory" {
				// Another session has its own count.
				if res, err := s.client(t, "2025-11-25", nil).CallTool(context.Background(), &sdk.CallToolParams{Name: "hit"}); err != nil || res.IsError {
					t.Errorf("got %v, %v", res, err)
				}
			}
		})
	}
}

// TestServeEndsItsChildren checks that the server ends its children and answers running calls when it stops.
func TestServeEndsItsChildren(t *testing.T) {
	dir := t.TempDir()
	pids := filepath.Join(dir, "pid")
	writeFile(t, filepath.Join(dir, "server.sh"), "echo $$ > "+pids+"\nexec cat > /dev/null\n")
	writeFile(t, filepath.Join(dir, "tools.yaml"), `
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: mute}
spec: {command: sh, args: [`+filepath.Join(dir, "server.sh")+`], connect_timeout_ms: 300}
`+"---"+fmt.Sprintf(mockTool, "one"))
	s := serveHTTP(t, "-f", filepath.Join(dir, "tools.yaml"))
	if names := toolNames(t, s.client(t, "2025-11-25", nil)); names != "one" { // also waits for the server that never answers
		t.Errorf("got %s", names)
	}
	s.stop()
	if code := <-s.ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
	s.ended <- exitOK // for the cleanup
	raw, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(raw), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if !bytes.Contains(stat, []byte(") Z ")) {
			t.Errorf("the child %d lives on: %s", pid, stat)
		}
	}
}

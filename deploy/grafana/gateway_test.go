package grafana

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is the toolctl that the tests start.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "toolctl-alerts")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program = os.Getenv("TOOLCTL_PROGRAM"); program == "" {
		program = filepath.Join(dir, "toolctl")
		build := exec.Command("go", "build", "-o", program, "./cmd/toolctl")
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s", err, out)
			return 1
		}
	}
	return m.Run()
}

// toolctl runs a command to its end.
func toolctl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("toolctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// gateway is a running toolctl serve.
type gateway struct {
	t       *testing.T
	url     string // of /mcp
	metrics string
	session string
	end     func()
}

// serve starts toolctl serve until the test ends.
func serve(t *testing.T, args ...string) *gateway {
	t.Helper()
	cmd := exec.Command(program, append([]string{"serve", "--http", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"}, args...)...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t}
	g.end = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var all []string
	lines := bufio.NewScanner(log)
	for g.url == "" && lines.Scan() {
		all = append(all, lines.Text())
		var at struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &at) != nil {
			continue
		}
		switch at.Msg {
		case "metrics":
			g.metrics = at.URL
		case "listening":
			g.url = at.URL
		}
	}
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, log) }()
	t.Cleanup(func() { g.end(); <-drained })
	if g.url == "" {
		t.Fatalf("toolctl serve did not start:\n%s", strings.Join(all, "\n"))
	}
	return g
}

// post sends a message in the session of the gateway, and returns the answer.
func (g *gateway) post(body string) (answer string, header http.Header) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, g.url, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {g.session}}
	if g.session == "" {
		req.Header.Del("Mcp-Session-Id")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		g.t.Fatalf("%s: %s %s %v", body, res.Status, text, err)
	}
	return string(text), res.Header
}

// begin begins a session.
func (g *gateway) begin() {
	g.t.Helper()
	g.session = ""
	_, header := g.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	g.session = header.Get("Mcp-Session-Id")
}

// call calls a tool, and returns the answer.
func (g *gateway) call(tool string, args any) string {
	g.t.Helper()
	if g.session == "" {
		g.begin()
	}
	text, err := json.Marshal(args)
	if err != nil {
		g.t.Fatal(err)
	}
	answer, _ := g.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, text))
	return answer
}

// page reads /metrics; an error says that it does not answer.
func (g *gateway) page() ([]byte, error) { return get(g.metrics) }

func get(url string) ([]byte, error) {
	res, err := http.Get(url) //nolint:noctx // a test
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// until waits until /metrics has a line.
func (g *gateway) until(line string) {
	g.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		page, err := g.page()
		if err == nil && bytes.Contains(page, []byte("\n"+line+"\n")) {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("/metrics never had %s:\n%s %v", line, page, err)
		}
	}
}

// write writes manifests into a folder of their own, and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tools.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// applied returns a store with manifests.
func applied(t *testing.T, text string) string {
	t.Helper()
	db := filepath.Join(t.TempDir(), "state.db")
	toolctl(t, "apply", "--store", db, "-f", write(t, text))
	return db
}

// echo is a tool that works.
const echo = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: echo}
spec: {description: Says what it is told, input_schema: {type: object}, mock_result: {ok: true}}
`

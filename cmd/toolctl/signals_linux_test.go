package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestInterruptedReadingStdin checks that Ctrl-C ends a command that waits for the end of its stdin.
func TestInterruptedReadingStdin(t *testing.T) {
	dir := t.TempDir()
	tool, prompt := filepath.Join(dir, "tool.yaml"), filepath.Join(dir, "trip.md")
	writeFile(t, tool, "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: one}\nspec: {description: One, input_schema: {type: object}, mock_result: {}}\n")
	writeFile(t, prompt, "---\ndescription: Trip\n---\nGo to {{.city}}.\n")
	for _, args := range [][]string{
		{"validate", "-f", "-"}, {"validate", "-"}, {"list", "-f", "-"}, {"apply", "-f", "-", "--store", filepath.Join(dir, "a.db")},
		{"call", "-f", tool, "one", "--args-file", "-"}, {"call", "-f", tool, "one", "-a", "-"}, {"call", "-f", "-", "one"},
		{"policy", "explain", "-f", tool, "one", "--args-file", "-"}, {"render", "-f", prompt, "trip", "--args-file", "-"},
		{"run", "-f", prompt, "trip", "--args-file", "-", "--model", "m", "--provider", "openai"}, {"test", "-f", "-"},
		{"import", "mcp-config", "-"}, {"import", "promptpack", "-"}, {"import", "openapi", "-"}, {"schema", "diff", "-", tool},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			cmd := again(t, "toolctl", args...)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			// The text exceeds the buffer of a pipe, so the program has begun to read when the write returns.
			if _, err := in.Write(bytes.Repeat([]byte(" "), 1<<18)); err != nil {
				t.Fatal(err)
			}
			if code := interrupt(t, cmd); code != exitInterrupted || errs.String() != "error: interrupted\n" || out.Len() > 0 {
				t.Errorf("exit %d: %s%s", code, &errs, &out)
			}
		})
	}
}

// TestInterruptedStatus checks that Ctrl-C during the query of a gateway is not reported as an answer of the gateway.
func TestInterruptedStatus(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(asked); <-release }))
	defer gateway.Close()
	defer close(release)
	cmd := again(t, "toolctl", "status", "--url", gateway.URL)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if code := interrupt(t, cmd); code != exitInterrupted || errs.String() != "error: interrupted\n" {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

// interrupt sends SIGINT and returns the exit code.
func interrupt(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(time.Minute, func() { t.Error("it goes on"); _ = cmd.Process.Kill() })
	defer stuck.Stop()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// TestInterruptedWithStubbornServer checks that Ctrl-C does not wait for an MCP server that ignores the end of its
// stdin and SIGTERM.
func TestInterruptedWithStubbornServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mark, file := filepath.Join(dir, "pid"), filepath.Join(dir, "server.yaml")
	writeFile(t, file, "apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: deaf}\nspec:\n  command: sh\n  args: [-c, \"trap '' TERM INT; echo $$ > "+mark+".new; mv "+mark+".new "+mark+"; while :; do sleep 0.1; done\"]\n")
	for _, args := range [][]string{{"call", "-f", file, "deaf__x"}, {"wait", "-f", file, "mcpserver/deaf"}, {"describe", "-f", file, "mcpserver/deaf"}, {"lock", "-f", file}} {
		t.Run(args[0], func(t *testing.T) {
			var took time.Duration
			for range 5 { // one of five tries may be slow on a busy machine; without the hurry, each takes 4 seconds
				_ = os.Remove(mark)
				cmd := again(t, "toolctl", args...)
				cmd.Dir = t.TempDir()
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				for tick := time.Tick(time.Millisecond); ; <-tick {
					if _, err := os.Stat(mark); err == nil {
						break
					}
				}
				began := time.Now()
				if code := interrupt(t, cmd); code != exitInterrupted {
					t.Errorf("exit code %d", code)
				}
				if took = time.Since(began); took < 3*time.Second {
					return
				}
			}
			t.Errorf("it took %s", took)
		})
	}
}

// TestServeDrains checks that after SIGTERM and SIGHUP, running calls finish and new ones are refused, and that Ctrl-C
// cancels calls.
func TestServeDrains(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			asked, release, cancelled := make(chan struct{}), make(chan struct{}), make(chan struct{})
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice the end of the request
				close(asked)
				select {
				case <-release:
					w.Header().Set("Content-Type", "application/json")
					io.WriteString(w, `{"done": true}`)
				case <-r.Context().Done():
					close(cancelled)
				}
			}))
			defer api.Close()
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "slow.yaml"), "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: slow}\nspec: {description: Slow, input_schema: {type: object}, http: {url: \""+api.URL+"\"}}\n")
			s := launchServe(t, again(t, "toolctl"), "-f", dir, "--allow-private-network", "--drain-timeout", "5m")
			cs := connect(t, s.url, "2025-11-25")
			type answer struct {
				res *sdk.CallToolResult
				err error
			}
			answered := make(chan answer, 1)
			go func() {
				res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "slow"})
				answered <- answer{res, err}
			}()
			<-asked
			if err := s.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if sig == syscall.SIGINT {
				<-cancelled
				<-answered // the response during shutdown does not matter
			} else {
				untilRefused(t, s.url)
				close(release)
				if a := <-answered; a.err != nil || a.res.IsError || !strings.Contains(textOf(a.res), "done") {
					t.Errorf("%+v", a)
				}
			}
			if err := s.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// untilRefused waits until a server accepts no more connections.
func untilRefused(t *testing.T, url string) {
	t.Helper()
	address, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	for tick := time.Tick(time.Millisecond); ; <-tick {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return
		}
		res.Body.Close()
	}
}

// TestServeWaitsForInitialize checks that the first message of serve answers the client's initialize, even if an MCP
// server is ready earlier.
func TestServeWaitsForInitialize(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "about.json"), `{"Name": "docs", "Version": "1", "Tools": [{"name": "find", "inputSchema": {"type": "object"}}]}`)
	writeFile(t, filepath.Join(dir, "docs.yaml"), "apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: docs}\nspec: {command: "+quoted(linked(t, "mcpserver"))+", args: ["+quoted(filepath.Join(dir, "about.json"))+"]}\n")
	cmd := again(t, "toolctl", "serve", "-f", dir)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, out := startPiped(t, cmd)
	var logged strings.Builder
	for lines := bufio.NewScanner(log); ; {
		if !lines.Scan() {
			t.Fatalf("the server was never ready: %s", &logged)
		}
		logged.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "tools changed") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	io.WriteString(in, `{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, `"id":"first"`) {
		t.Errorf("the first message is %q: %v", line, err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

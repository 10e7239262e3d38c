//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp"
)

// These tests use real servers from the npm registry. .ci/node-servers installs them and prints the folder for
// TOOLCTL_NODE_SERVERS.

// nodeServer returns the main script of a server.
func nodeServer(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("TOOLCTL_NODE_SERVERS")
	if dir == "" {
		t.Skip("TOOLCTL_NODE_SERVERS is not set: run .ci/node-servers, which needs Node, and set it to the folder that it prints")
	}
	path := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func stdioServer(name string, args ...string) *v1.MCPServer {
	s := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	s.Metadata.Name = name
	s.Spec.Command, s.Spec.Args = "node", args
	return s
}

// openServers opens a workspace with servers from files, as every command does.
func openServers(t *testing.T, servers ...*v1.MCPServer) (*app, *action.Workspace) {
	t.Helper()
	dir := t.TempDir()
	for _, s := range servers {
		text, err := manifest.MarshalYAML(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, s.Metadata.Name+".yaml"), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{in: strings.NewReader(""), out: &bytes.Buffer{}, err: t.Output(), env: os.LookupEnv, conf: action.Config{Files: []string{dir}}}
	c := a.reaching(t.Context())
	w, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, w
}

// discoverReady queries all servers. All must be ready without warnings.
func discoverReady(t *testing.T, w *action.Workspace) map[string]mcp.ServerState {
	t.Helper()
	states := map[string]mcp.ServerState{}
	for _, s := range w.Discover(t.Context()) {
		if !s.Ready || len(s.Warnings) > 0 {
			t.Fatalf("%s: ready %v: %s %q\n%s", s.Key.Name, s.Ready, s.Reason, s.Warnings, s.Stderr)
		}
		for _, tool := range s.Tools {
			for _, f := range inspect.Tool(tool.Tool) {
				t.Errorf("%s: a false alarm: %s", tool.Remote, f)
			}
		}
		states[s.Key.Name] = s
	}
	return states
}

func execute(t *testing.T, w *action.Workspace, tool, args string) (v1.Result, error) {
	t.Helper()
	return w.Registry.Execute(t.Context(), v1.Call{Tool: tool, Args: json.RawMessage(args)})
}

// text calls a tool, which must succeed, and returns its content, without quotes if it is a string.
func text(t *testing.T, w *action.Workspace, tool string, args any) string {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := execute(t, w, tool, string(raw))
	if err != nil || res.Status != v1.StatusComplete {
		t.Fatalf("%s %s: %+v, %v", tool, raw, res, err)
	}
	var s string
	if json.Unmarshal(res.Content, &s) == nil {
		return s
	}
	return string(res.Content)
}

// everythingCalls has a call and a part of its result for each tool of server-everything that needs nothing from the
// client.
var everythingCalls = []struct {
	tool, args, content string
	parts               []string
}{
	{"echo", `{"message":"hi"}`, `Echo: hi`, []string{"text"}},
	{"get-annotated-message", `{"messageType":"error","includeImage":true}`, `Error: Operation failed`, []string{"text", "image"}},
	{"get-env", `{}`, `PATH`, []string{"text"}},
	{"get-resource-links", `{"count":2}`, `2 resource links`, []string{"text", "resource_link", "resource_link"}},
	{"get-resource-reference", `{"resourceType":"Text","resourceId":1}`, `Resource 1`, []string{"text", "resource", "text"}},
	{"get-structured-content", `{"location":"Chicago"}`, `"temperature":36`, []string{"text"}},
	{"get-sum", `{"a":"1","b":2}`, `The sum of 1 and 2 is 3.`, []string{"text"}},
	{"get-tiny-image", `{}`, `MCP logo`, []string{"text", "image", "text"}},
	{"gzip-file-as-resource", `{"name":"x.gz","data":"data:text/plain,hi","outputType":"resource"}`, ``, []string{"resource"}},
	{"toggle-simulated-logging", `{}`, `Started simulated`, []string{"text"}},
	{"toggle-subscriber-updates", `{}`, `Started simulated`, []string{"text"}},
	{"trigger-long-running-operation", `{"duration":0.2,"steps":2}`, `completed`, []string{"text"}},
}

// needsTasks is the tool that requires task augmentation from the client.
const needsTasks = "simulate-research-query"

func TestNodeEverything(t *testing.T) {
	t.Parallel()
	script := nodeServer(t, "everything")
	for _, transport := range []string{"stdio", v1.TransportStreamableHTTP, v1.TransportSSE} {
		t.Run(transport, func(t *testing.T) {
			server := stdioServer("everything", script)
			if transport != "stdio" {
				server = startHTTP(t, script, transport)
			}
			_, w := openServers(t, server)
			state := discoverReady(t, w)["everything"]
			if state.Instructions == "" || len(state.Prompts) != 4 || len(state.Resources) < 7 || len(state.ResourceTemplates) != 2 || state.ProtocolVersion == "" {
				t.Errorf("state: %+v", state)
			}
			missing := map[string]bool{}
			for _, tool := range state.Tools {
				missing[tool.Remote] = true
			}
			for _, c := range everythingCalls {
				delete(missing, c.tool)
				t.Run(c.tool, func(t *testing.T) {
					res, err := execute(t, w, "everything__"+c.tool, c.args)
					if err != nil || res.Status != v1.StatusComplete {
						t.Fatalf("%+v, %v", res, err)
					}
					var parts []string
					for _, p := range res.Parts {
						parts = append(parts, p.Type)
					}
					if !strings.Contains(string(res.Content), c.content) || !slices.Equal(parts, c.parts) {
						t.Errorf("content %s, parts %q", res.Content, parts)
					}
				})
			}
			delete(missing, needsTasks)
			if len(missing) > 0 {
				t.Errorf("tools without a call: %v", slices.Collect(maps.Keys(missing)))
			}
			if res, err := execute(t, w, "everything__"+needsTasks, `{"topic":"x"}`); err == nil && res.Status == v1.StatusComplete {
				t.Errorf("%s needs tasks and gave %s", needsTasks, res.Content)
			}
			parts, err := w.Upstreams().ReadResource(t.Context(), state.Key, "demo://resource/dynamic/text/3")
			if err != nil || len(parts) != 1 || !strings.HasPrefix(parts[0].Resource.Text, "Resource 3") {
				t.Errorf("read: %+v, %v", parts, err)
			}
			prompt, err := w.Upstreams().GetPrompt(t.Context(), state.Key, "args-prompt", map[string]string{"city": "Oslo"})
			if err != nil || len(prompt.Messages) != 1 || !strings.Contains(prompt.Messages[0].Content.Text, "Oslo") {
				t.Errorf("prompt: %+v, %v", prompt, err)
			}
		})
	}
}

// startHTTP starts server-everything on a free port and returns its manifest.
func startHTTP(t *testing.T, script, transport string) *v1.MCPServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mode, path := "streamableHttp", "mcp"
	if transport == v1.TransportSSE {
		mode, path = "sse", "sse"
	}
	cmd := exec.Command("node", script, mode)
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	s.Metadata.Name = "everything"
	s.Spec.URL, s.Spec.Transport = fmt.Sprintf("http://127.0.0.1:%d/%s", port, path), transport
	a := &app{out: &bytes.Buffer{}, err: t.Output(), env: os.LookupEnv}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	c := a.reaching(ctx)
	for {
		state, err := c.AskServer(ctx, s)
		if err != nil || ctx.Err() != nil {
			t.Fatalf("%s: %v", state.Reason, errors.Join(err, ctx.Err()))
		}
		if state.Ready {
			return s
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func TestNodeFilesystem(t *testing.T) {
	t.Parallel()
	script := nodeServer(t, "filesystem")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := stdioServer("fs", script, dir)
	server.Spec.ToolFilter = &v1.ToolFilter{Blocklist: []string{"directory_*"}}
	_, w := openServers(t, server)
	discoverReady(t, w)
	path := filepath.Join(dir, "notes.txt")
	content := "first\nsecond — ünïcödé\n" + strings.Repeat("x", 100_000) + "\n"

	text(t, w, "fs__write_file", map[string]any{"path": path, "content": content})
	if got, err := os.ReadFile(path); err != nil || string(got) != content {
		t.Errorf("written: %d bytes, %v", len(got), err)
	}
	if got := text(t, w, "fs.read_text_file", map[string]any{"path": path, "head": 2}); !strings.Contains(got, "ünïcödé") || strings.Contains(got, "xxx") {
		t.Errorf("head: %.100q", got)
	}
	if got := text(t, w, "read_text_file", map[string]any{"path": path}); !strings.Contains(got, strings.Repeat("x", 100_000)) {
		t.Errorf("read %d bytes", len(got))
	}
	text(t, w, "fs__edit_file", map[string]any{"path": path, "edits": []map[string]string{{"oldText": "first", "newText": "FIRST"}}})
	if got, _ := os.ReadFile(path); !strings.HasPrefix(string(got), "FIRST\n") {
		t.Errorf("edited: %.20q", got)
	}
	text(t, w, "fs__create_directory", map[string]any{"path": filepath.Join(dir, "sub")})
	text(t, w, "fs__move_file", map[string]any{"source": path, "destination": filepath.Join(dir, "sub", "moved.txt")})
	if _, err := os.Stat(filepath.Join(dir, "sub", "moved.txt")); err != nil {
		t.Error(err)
	}
	if got := text(t, w, "fs__list_directory", map[string]any{"path": dir}); !strings.Contains(got, "[DIR] sub") {
		t.Errorf("list: %q", got)
	}
	for _, tool := range []string{"list_directory_with_sizes", "get_file_info", "search_files", "list_allowed_directories", "read_multiple_files"} {
		args := map[string]any{"path": dir, "pattern": "**/*.txt", "paths": []string{filepath.Join(dir, "sub", "moved.txt")}}
		if got := text(t, w, "fs__"+tool, args); got == "" {
			t.Errorf("%s: nothing", tool)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a.png"), []byte("\x89PNG\r\n\x1a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	res, err := execute(t, w, "fs__read_media_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "a.png")))
	if err != nil || len(res.Parts) == 0 || res.Parts[0].Type != v1.PartImage || res.Parts[0].Data != "iVBORw0KGgo=" {
		t.Errorf("media: %+v, %v", res, err)
	}

	res, err = execute(t, w, "fs__read_text_file", `{"path":"/etc/hostname"}`)
	var failed *v1.ExecutionError
	if res.Status != v1.StatusFailed || err != nil && !errors.As(err, &failed) || res.Error == nil || !strings.Contains(res.Error.Message, "Access denied") {
		t.Errorf("outside: %+v, %v", res, err)
	}
	var notFound *v1.NotFoundError
	if _, err := execute(t, w, "fs__directory_tree", fmt.Sprintf(`{"path":%q}`, dir)); !errors.As(err, &notFound) {
		t.Errorf("a filtered tool: %v", err)
	}
}

func TestNodeMemory(t *testing.T) {
	t.Parallel()
	script := nodeServer(t, "memory")
	server := stdioServer("memory", script)
	server.Spec.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}
	for i, want := range []string{`"Ada"`, `"knows"`} { // the second session reads the data that the first one wrote
		_, w := openServers(t, server)
		discoverReady(t, w)
		if i == 0 {
			text(t, w, "memory__create_entities", map[string]any{"entities": []any{
				map[string]any{"name": "Ada", "entityType": "person", "observations": []string{"writes programs"}},
				map[string]any{"name": "Bob", "entityType": "person", "observations": []string{}},
			}})
			text(t, w, "memory__create_relations", map[string]any{"relations": []any{map[string]any{"from": "Ada", "to": "Bob", "relationType": "knows"}}})
		}
		if got := text(t, w, "memory__read_graph", map[string]any{}); !strings.Contains(got, want) {
			t.Errorf("graph: %s", got)
		}
		if got := text(t, w, "memory__search_nodes", map[string]any{"query": "programs"}); !strings.Contains(got, "writes programs") || strings.Contains(got, `"name":"Bob"`) {
			t.Errorf("search: %s", got)
		}
	}
}

// TestNodeKilled checks that the next call restarts a child that was killed with SIGKILL between calls. A call that
// was running is repeated if the tool's hints allow it. Otherwise it fails with a typed error, and the next call
// works.
func TestNodeKilled(t *testing.T) {
	t.Parallel()
	const long = "trigger-long-running-operation"
	careful := stdioServer("careful", nodeServer(t, "everything"))
	careful.Spec.Overrides = map[string]v1.ToolOverride{long: {Hints: &v1.Hints{Title: "Not to be repeated"}}}
	_, w := openServers(t, stdioServer("everything", nodeServer(t, "everything")), careful)
	discoverReady(t, w)
	pid := func(server string) int {
		s, _ := w.Upstreams().State(v1.Key{Kind: v1.KindMCPServer, Namespace: v1.DefaultNamespace, Name: server})
		return s.PID
	}
	pids := []int{pid("everything"), pid("careful")}
	for range 3 {
		before := pid("everything")
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		// A call that races with the death of the child may be lost. Its error then says so.
		res, err := execute(t, w, "everything__echo", `{"message":"again"}`)
		var lost *v1.MCPError
		if err != nil && !errors.As(err, &lost) {
			t.Fatalf("after SIGKILL: %+v, %v", res, err)
		}
		if err != nil {
			if res, err = execute(t, w, "everything__echo", `{"message":"again"}`); err != nil {
				t.Fatalf("the next call after SIGKILL: %+v, %v", res, err)
			}
		}
		if now := pid("everything"); now == before || now == 0 {
			t.Errorf("pid %d after %d", now, before)
		}
	}

	// killDuring calls the long operation and kills the server at its first progress report.
	killDuring := func(server, args string) (v1.Result, error) {
		victim := pid(server)
		pids = append(pids, victim)
		var once sync.Once
		ctx := mcp.WithProgress(t.Context(), func(mcp.Progress) {
			once.Do(func() { _ = syscall.Kill(victim, syscall.SIGKILL) })
		})
		return w.Registry.Execute(ctx, v1.Call{Tool: server + "__" + long, Args: json.RawMessage(args)})
	}
	if res, err := killDuring("everything", `{"duration":1,"steps":10}`); err != nil || res.Attempts != 2 {
		t.Errorf("a call that may be repeated: %+v, %v", res, err)
	}
	began := time.Now()
	res, err := killDuring("careful", `{"duration":20,"steps":100}`)
	var lost *v1.MCPError
	if !errors.As(err, &lost) {
		t.Errorf("a call that may not be repeated: %+v, %v", res, err)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("the death was noticed after %s", d)
	}
	for _, server := range []string{"everything", "careful"} {
		if got := text(t, w, server+"__echo", map[string]any{"message": "back"}); got != "Echo: back" {
			t.Errorf("%s afterwards: %q", server, got)
		}
		pids = append(pids, pid(server))
	}
	if err := w.Upstreams().Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range pids {
		if err := syscall.Kill(p, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there: %v", p, err)
		}
	}
}

// TestNodeLock checks that two sessions describe their tools alike, so that a lock of real servers does not drift by
// itself.
func TestNodeLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	servers := []*v1.MCPServer{stdioServer("everything", nodeServer(t, "everything")), stdioServer("filesystem", nodeServer(t, "filesystem"), dir), stdioServer("memory", nodeServer(t, "memory"))}
	var locks []string
	for range 2 {
		_, w := openServers(t, servers...)
		now, down := action.LockServers(w.Discover(t.Context()))
		if len(down) > 0 {
			t.Fatal(down)
		}
		locks = append(locks, string(lock.Marshal(lock.File{Servers: now})))
	}
	if locks[0] != locks[1] {
		t.Error("two locks of the same servers differ")
	}
	if f, err := lock.Parse([]byte(locks[0])); err != nil || len(f.Servers) != 3 {
		t.Errorf("%v", err)
	}
}

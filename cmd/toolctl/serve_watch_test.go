package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// listener returns client options that report changed lists.
func listener() (*sdk.ClientOptions, chan struct{}) {
	told := make(chan struct{}, 100)
	return &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} }}, told
}

func (s *served) readyz(t testing.TB) string {
	t.Helper()
	res, err := http.Get(strings.TrimSuffix(s.url, "/mcp") + "/readyz") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s %v", res.StatusCode, body, err)
	}
	return string(body)
}

func TestServeFollowsFiles(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "one.yaml"), fmt.Sprintf(mockTool, "one"))
	s := serveHTTP(t, "-f", dir, "--watch")
	o, told := listener()
	cs := s.client(t, "2025-11-25", o)

	writeFile(t, filepath.Join(dir, "sub", "two.yaml"), fmt.Sprintf(mockTool, "two")) // in a new folder
	<-told
	if names := toolNames(t, cs); names != "one two" {
		t.Errorf("got %s", names)
	}
	if res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "two"}); err != nil || res.IsError {
		t.Errorf("got %v, %v", res, err)
	}

	// A set with a violation changes nothing, does not even remove objects, and is reported.
	if err := os.Remove(filepath.Join(dir, "one.yaml")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "sub", "two.yaml"), strings.Replace(fmt.Sprintf(mockTool, "two"), "input_schema: {type: object}", "input_schema: {type: object, properties: {a: {type: txt}}}", 1))
	line := s.wait(t, `"msg":"the reload failed`)
	for !strings.Contains(line, "two.yaml") { // serve may have read the folder between the two changes
		line = s.wait(t, `"msg":"the reload failed`)
	}
	if !strings.Contains(line, `spec.input_schema`) {
		t.Errorf("got %s", line)
	}
	if body := s.readyz(t); !strings.Contains(body, `"warning":"the reload at `) || !strings.Contains(body, `"ready":true`) || strings.Contains(body, dir) {
		t.Error(body)
	}
	if names := toolNames(t, cs); !strings.Contains(names, "two") {
		t.Errorf("got %s", names)
	}

	writeFile(t, filepath.Join(dir, "sub", "two.yaml"), fmt.Sprintf(mockTool, "three"))
	s.wait(t, `"msg":"reloaded"`)
	if body := s.readyz(t); strings.Contains(body, "warning") {
		t.Error(body)
	}
	if names := toolNames(t, cs); names != "three" {
		t.Errorf("got %s", names)
	}
}

// TestServeFollowsOneFileThatIsReplaced checks that serve notices when a file is replaced, as editors and
// configuration systems do.
func TestServeFollowsOneFileThatIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tools.yaml")
	writeFile(t, path, fmt.Sprintf(mockTool, "one"))
	s := serveHTTP(t, "-f", path, "--watch")
	o, told := listener()
	cs := s.client(t, "2026-07-28", o)
	for _, name := range []string{"two", "three"} {
		writeFile(t, filepath.Join(dir, "next"), fmt.Sprintf(mockTool, name))
		if err := os.Rename(filepath.Join(dir, "next"), path); err != nil {
			t.Fatal(err)
		}
		s.wait(t, `"msg":"reloaded"`)
		if names := toolNames(t, cs); names != name {
			t.Errorf("got %s, want %s", names, name)
		}
	}
	<-told
}

func TestServeFollowsTheStore(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "state.db")
	apply := func(name string) {
		t.Helper()
		writeFile(t, filepath.Join(dir, name+".yaml"), fmt.Sprintf(mockTool, name))
		if code := run(context.Background(), []string{"apply", "--store", db, "-f", filepath.Join(dir, name+".yaml")}, strings.NewReader(""), io.Discard, io.Discard); code != exitOK {
			t.Fatalf("apply: exit code %d", code)
		}
	}
	apply("one")
	s := serveHTTP(t, "--store", db, "--watch", "--select", "team in (one,two)")
	o, told := listener()
	cs := s.client(t, "2025-11-25", o)
	apply("two")
	<-told
	if names := toolNames(t, cs); names != "one two" {
		t.Errorf("got %s", names)
	}
	apply("three") // the selector excludes this object
	s.wait(t, `"objects":3`)
	if names := toolNames(t, cs); names != "one two" {
		t.Errorf("got %s", names)
	}
	if _, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "three"}); err == nil || !strings.Contains(err.Error(), `unknown tool "three"`) {
		t.Errorf("got %v", err)
	}
}

// TestServeReloadsWhileItIsCalled checks that calls continue while the manifests change.
func TestServeReloadsWhileItIsCalled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tools.yaml")
	writeFile(t, path, fmt.Sprintf(mockTool, "one"))
	s := serveHTTP(t, "-f", dir, "--watch")
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for i := range 8 {
		cs := s.client(t, []string{"2025-11-25", "2026-07-28"}[i%2], nil)
		group.Go(func() {
			for ctx.Err() == nil {
				if res, err := cs.CallTool(context.Background(), &sdk.CallToolParams{Name: "one"}); err != nil || res.IsError {
					t.Errorf("got %v, %v", res, err)
					return
				}
			}
		})
	}
	for i := range 5 {
		writeFile(t, path+".next", fmt.Sprintf(mockTool, "one")+"---"+fmt.Sprintf(mockTool, fmt.Sprint("extra-", i)))
		if err := os.Rename(path+".next", path); err != nil { // a rename, so that the tool always exists
			t.Fatal(err)
		}
		s.wait(t, `"msg":"reloaded"`)
	}
	stop()
	group.Wait()
}

// TestServeFollowsServers checks that a reload queries a new server, closes a removed one, and refuses the tools of a
// server that it locks.
func TestServeFollowsServers(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "mcpserver")); err != nil { // testscript runs its commands by name
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(bin, "notes.json"), `{"name": "notes", "version": "1", "tools": [{"name": "echo", "description": "Echo", "inputSchema": {"type": "object"}}]}`)
	manifest := func(more string) string {
		return fmt.Sprintf(mockTool, "one") + fmt.Sprintf(`---
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: notes}
spec: {command: %s, args: [%s]%s}
`, filepath.Join(bin, "mcpserver"), filepath.Join(bin, "notes.json"), more)
	}
	path := filepath.Join(dir, "tools.yaml")
	writeFile(t, path, fmt.Sprintf(mockTool, "one"))
	s := serveHTTP(t, "-f", path, "--watch", "--lock-file", filepath.Join(dir, "toolctl.lock"), "--tools", "notes__*")
	cs := s.client(t, "2025-11-25", nil)
	for _, step := range []struct{ name, text, want string }{
		{"added", manifest(""), "notes__echo"},
		{"changed", manifest(`, tool_filter: {blocklist: ["*"]}`), ""},
		{"changed back", manifest(""), "notes__echo"},
		{"locked without a lock", manifest(", locked: true"), ""},
		{"unlocked", manifest(""), "notes__echo"},
		{"removed", fmt.Sprintf(mockTool, "one"), ""},
	} {
		writeFile(t, path, step.text)
		s.wait(t, `"msg":"reloaded"`)
		if names := toolNames(t, cs); names != step.want {
			t.Errorf("%s: got %q, want %q", step.name, names, step.want)
		}
	}
}

// TestServeFollowsOverridesAndConnections checks that serve at once uses store changes from another terminal, an
// override and a connected server, and still has them after a restart.
func TestServeFollowsOverridesAndConnections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "state.db")
	cli := func(args ...string) {
		t.Helper()
		var said strings.Builder
		if code := run(context.Background(), append([]string{"--store", db}, args...), strings.NewReader(""), &said, &said); code != exitOK {
			t.Fatalf("toolctl %s: exit code %d: %s", strings.Join(args, " "), code, said.String())
		}
	}
	writeFile(t, filepath.Join(dir, "one.yaml"), fmt.Sprintf(mockTool, "one"))
	cli("apply", "-f", filepath.Join(dir, "one.yaml"))
	check := func(cs *sdk.ClientSession) {
		t.Helper()
		list, err := cs.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Description != "Better." {
			t.Errorf("got %+v, %v", list, err)
		}
	}
	s := serveHTTP(t, "--store", db)
	o, told := listener()
	cs := s.client(t, "2025-11-25", o)
	cli("override", "set", "one", "Better.")
	<-told
	check(cs)
	check(serveHTTP(t, "--store", db).client(t, "2025-11-25", nil))

	s = serveHTTP(t, "--store", db, "--watch")
	cli("mcp", "connect", "--no-check", "--name", "later", "--", filepath.Join(dir, "no-such-program"))
	s.wait(t, `"msg":"reloaded"`)
	cli("mcp", "disconnect", "later")
	s.wait(t, `"msg":"reloaded"`)
}

// putFile replaces a file in one step: a reader sees the old or the new text, never a part.
func putFile(t *testing.T, path, text string) {
	t.Helper()
	whole := filepath.Join(t.TempDir(), "whole")
	writeFile(t, whole, text)
	if err := os.Rename(whole, path); err != nil {
		t.Fatal(err)
	}
}

// TestServeTellsOfFilesThatHoldNothing checks that a file with only violations changes no object but is reported. It
// is reported only once, because the log may be in the watched folder. Violations at the start do not count as a
// failed reload.
func TestServeTellsOfFilesThatHoldNothing(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "tools.yaml"), fmt.Sprintf(mockTool, "one"))
	writeFile(t, filepath.Join(dir, "left-out.yaml"), "kind: [")
	s := serveHTTP(t, "-f", dir, "--watch")
	ready := func() string {
		res, err := http.Get(strings.Replace(s.url, "/mcp", "/readyz", 1))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	putFile(t, filepath.Join(dir, "tools.yaml"), fmt.Sprintf(mockTool, "one")) // no change in content
	putFile(t, filepath.Join(dir, "broken.yaml"), "kind: {")
	if line := s.wait(t, `"msg":"the reload failed`); !strings.Contains(line, "broken.yaml:1") {
		t.Errorf("the log says %s", line)
	}
	if text := ready(); !strings.Contains(text, `"warning":"the reload at `) {
		t.Errorf("readyz says %s", text)
	}
	writeFile(t, filepath.Join(dir, "serve.log"), "a line")
	if err := os.Remove(filepath.Join(dir, "broken.yaml")); err != nil {
		t.Fatal(err)
	}
	s.wait(t, `"msg":"the manifests match the served objects again"`)
	if text := ready(); strings.Contains(text, "warning") {
		t.Errorf("readyz says %s", text)
	}
	s.mu.Lock()
	failures := strings.Count(strings.Join(s.past, "\n"), "the reload failed")
	s.mu.Unlock()
	if failures != 1 {
		t.Errorf("%d lines of failed reloads:\n%s", failures, strings.Join(s.past, "\n"))
	}
}

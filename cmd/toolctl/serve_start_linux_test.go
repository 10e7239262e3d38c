package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNamedPipesAreRefused checks that commands that read files refuse a named pipe at once, even if nobody writes to
// it.
func TestNamedPipesAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe, tool := filepath.Join(dir, "pipe"), filepath.Join(dir, "tool.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writeFile(t, tool, "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: one}\nspec: {description: One, input_schema: {type: object}, mock_result: {}}\n")
	for exit, commands := range map[int][][]string{
		exitInvalid: {{"validate", "-f", pipe}, {"serve", "--http", "127.0.0.1:0", "-f", tool, "--tls-cert", pipe, "--tls-key", pipe}},
		exitUsage: {{"call", "one", "-f", tool, "--args-file", pipe}, {"call", "one", "-f", tool, "--args-file", "/dev/zero"},
			{"serve", "--http", "127.0.0.1:0", "-f", tool, "--token-file", pipe}},
	} {
		for _, args := range commands {
			began := time.Now()
			out, errs := toolctl(t, exit, args...)
			if text := out + errs; !strings.Contains(text, "expected a regular file") {
				t.Errorf("%v: %s", args, text)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%v took %s", args, took)
			}
		}
	}
}

// TestServeListensFirst checks that serve starts no child process before it can listen.
func TestServeListensFirst(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	mark := filepath.Join(dir, "started")
	writeFile(t, filepath.Join(dir, "server.yaml"), "apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: child}\nspec: {command: touch, args: ["+quoted(mark)+"]}\n")
	_, errs := toolctl(t, exitUsage, "serve", "--http", taken.Addr().String(), "-f", dir)
	if !strings.Contains(errs, "address already in use") {
		t.Error(errs)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the child was started")
	}
}

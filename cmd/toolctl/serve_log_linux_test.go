package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestServeWithoutItsLog checks that a log that cannot be written stops no call, whether its reader has ended or the
// disk is full.
func TestServeWithoutItsLog(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "tool.yaml")
	writeFile(t, manifest, "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: one}\nspec: {description: One, input_schema: {type: object}, mock_result: {}}\n")
	for _, c := range []struct {
		name string
		open func() (stderr *os.File, lose func())
	}{
		{"nobody reads", func() (*os.File, func()) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			return w, func() { r.Close() }
		}},
		{"full", func() (*os.File, func()) {
			f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			return f, func() {}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stderr, lose := c.open()
			defer stderr.Close()
			address := freeAddress(t)
			// Each call has a line in the log of calls.
			cmd := again(t, "toolctl", "serve", "--http", address, "-f", manifest, "--access-log", "json")
			cmd.Stderr = stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			stderr.Close()
			untilListening(t, address)
			lose()
			at := "http://" + address + "/mcp"
			w := wire{version: "2026-07-28"}
			client := newCaller(t, at, w.request(at, 1, "one", "{}"))
			for range 3 {
				if _, err := client.call(); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// TestLogsOfServersAreMasked checks that an MCP server's log and stderr about a call are masked by the rules of the
// called tool, as are the names of its loggers.
func TestLogsOfServersAreMasked(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "all.yaml")
	writeFile(t, manifest, `apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: talker}
spec: {command: `+quoted(linked(t, "faulty-stdio"))+`, args: [talk], env: {API_KEY: "${API_KEY}"}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: talk}
spec: {description: Talk, input_schema: {type: object}, redact: [password], mcp: {server: talker, tool: talk}}
`)
	cmd := again(t, "toolctl", "call", "-v", "-f", manifest, "talk", "-a", "password=of-the-caller")
	cmd.Env = append(os.Environ(), "API_KEY=of-the-environment")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if n := strings.Count(string(said), "[REDACTED]"); n < 5 {
		t.Errorf("%d parts are masked: expected 5 at least", n)
	}
	if strings.Contains(string(said), "of-the-") {
		t.Errorf("a secret is in\n%s", said)
	}
}

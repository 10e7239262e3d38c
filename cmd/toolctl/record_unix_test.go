//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecordFilesystemAndReplay checks that a real recording of server-filesystem replays the same without the server.
func TestRecordFilesystemAndReplay(t *testing.T) {
	script := nodeServer(t, "filesystem")
	dir := writeFiles(t, map[string]string{"data/notes.txt": "hello\n"})
	data, err := filepath.EvalSymlinks(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	tools := func(command string) map[string]string {
		return map[string]string{
			"server.yaml": fmt.Sprintf("apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: fs}\nspec: {command: %q, args: [%q, %q]}\n", command, script, data),
			"tool.yaml": `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: read-notes}
spec:
  description: Read
  input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
  mcp: {server: fs, tool: read_text_file}
`}
	}
	real, gone := writeFiles(t, tools("node")), writeFiles(t, tools("/nowhere/node"))
	cassette := filepath.Join(gone, "calls.yaml")
	path := filepath.Join(data, "notes.txt")
	content, _ := toolctl(t, exitOK, "record", "-f", real, "--cassette", cassette, "--", "call", "read-notes", "-a", "path="+path)
	toolctl(t, exitFailed, "record", "-f", real, "--cassette", cassette, "--append", "--", "call", "read-notes", "-a", "path="+path+".none")
	toolctl(t, exitUnavailable, "call", "-f", gone, "read-notes", "-a", "path="+path)
	text := fmt.Sprintf(`apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: notes}
spec:
  mocks: {read-notes: {cassette: calls.yaml}}
  turns:
  - calls:
    - {tool: read-notes, args: {path: %q}, expect: {result: {equals: %s}}}
    - {tool: read-notes, args: {path: %q}, expect: {error: {type: execution_failed, message: ENOENT}}}
`, path, strings.TrimSpace(content), path+".none")
	if err := os.WriteFile(filepath.Join(gone, "scenario.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := toolctl(t, exitOK, "test", gone)
	if !strings.Contains(out, "1 scenario: 1 passed, 0 failed, 0 skipped") {
		t.Errorf("got %s", out)
	}
}

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A log that cannot be written any longer stops no call: not when who read it is gone, and
// not when the disk is full.
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

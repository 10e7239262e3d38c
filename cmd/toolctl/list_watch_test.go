package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// list --watch prints what changes in files and in the store, under one head.
func TestListWatch(t *testing.T) {
	tool := func(name, text string) string {
		return "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: " + name + "}\nspec: {description: " + text + ", input_schema: {type: object}, mock_result: 1}\n"
	}
	for _, from := range []string{"files", "store"} {
		t.Run(from, func(t *testing.T) {
			dir := t.TempDir()
			file, db := filepath.Join(dir, "a.yaml"), filepath.Join(t.TempDir(), "state.db")
			save := func(text string) {
				t.Helper()
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if code := run(t.Context(), []string{"apply", "-f", file, "--store", db, "--set", "s", "--prune"}, strings.NewReader(""), io.Discard, io.Discard); from == "store" && code != exitOK {
					t.Fatal("apply failed")
				}
			}
			save(tool("one", "First"))
			args := []string{"get", "tools", "-w", "--store", db}
			if from == "files" {
				args = []string{"get", "tools", "-w", "-f", dir}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out, w := io.Pipe()
			done := make(chan int, 1)
			go func() {
				done <- run(ctx, args, strings.NewReader(""), w, io.Discard)
				w.Close()
			}()
			lines := bufio.NewScanner(out)
			next := func(want string) {
				t.Helper()
				if !lines.Scan() {
					t.Fatalf("the output ended before %q: %v", want, lines.Err())
				}
				if !regexp.MustCompile(want).MatchString(lines.Text()) {
					t.Fatalf("got %q, want %q", lines.Text(), want)
				}
			}
			next(`^NAMESPACE +NAME +MODE +READY +DESCRIPTION$`)
			next(`^default +one +mock +True +First$`)
			save(tool("one", "Changed"))
			next(`^default +one +mock +True +Changed$`)
			save(tool("one", "Changed") + "---\n" + tool("two", "Second"))
			next(`^default +two +mock +True +Second$`)
			save(tool("two", "Second"))
			next(`^default +one +mock +Deleted +Changed$`)
			cancel()
			if lines.Scan() {
				t.Errorf("unexpected line %q", lines.Text())
			}
			if code := <-done; code != exitOK {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

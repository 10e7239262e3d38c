package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// TestListWatchEvents checks that list --watch prints one document for each change, and the event if requested.
func TestListWatchEvents(t *testing.T) {
	t.Parallel()
	tool := func(name, text string) string {
		return "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: " + name + "}\nspec: {description: " + text + ", input_schema: {type: object}, mock_result: 1}\n"
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"-w"}, {"-w", "--output-watch-events"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			save(tool("one", "First"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out, w := io.Pipe()
			done := make(chan int, 1)
			go func() {
				done <- run(ctx, append([]string{"get", "tools", "-o", "json", "-f", dir}, args...), strings.NewReader(""), w, io.Discard)
				w.Close()
			}()
			docs := json.NewDecoder(out)
			next := func(kind, name, text string) {
				t.Helper()
				var got struct {
					Type     string
					Object   *v1.Tool
					Metadata v1.Metadata
					Spec     v1.ToolSpec
				}
				if err := docs.Decode(&got); err != nil {
					t.Fatal(err)
				}
				if len(args) == 1 {
					kind = ""
				} else if got.Object != nil {
					got.Metadata, got.Spec = got.Object.Metadata, got.Object.Spec
				}
				if got.Type != kind || got.Metadata.Name != name || got.Spec.Description != text {
					t.Fatalf("got %+v", got)
				}
			}
			next("ADDED", "one", "First")
			save(tool("one", "Changed"))
			next("MODIFIED", "one", "Changed")
			save(tool("one", "Changed") + "---\n" + tool("two", "Second"))
			next("ADDED", "two", "Second")
			save(tool("two", "Second"))
			next("DELETED", "one", "Changed")
			cancel()
			if code := <-done; code != exitOK {
				t.Errorf("exit code %d", code)
			}
		})
	}
	t.Run("--watch-only", func(t *testing.T) {
		save(tool("one", "First"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out, w := io.Pipe()
		done, first := make(chan int, 1), make(chan string, 1)
		go func() {
			done <- run(ctx, []string{"get", "tools", "-f", dir, "--watch-only", "--output-watch-events"}, strings.NewReader(""), w, io.Discard)
			w.Close()
		}()
		go func() {
			lines := bufio.NewScanner(out)
			lines.Scan() // the header
			lines.Scan()
			first <- lines.Text()
			_, _ = io.Copy(io.Discard, out)
		}()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ { // until the watch has started
			save(tool("one", fmt.Sprint("Change ", n)))
			select {
			case line := <-first:
				if !regexp.MustCompile(`^MODIFIED +default +one +mock +True +Change `).MatchString(line) {
					t.Errorf("got %q", line)
				}
				cancel()
				if code := <-done; code != exitOK {
					t.Errorf("exit code %d", code)
				}
				return
			case <-tick.C:
			}
		}
	})
	if code := run(t.Context(), []string{"get", "-f", dir, "--output-watch-events"}, strings.NewReader(""), io.Discard, io.Discard); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
}

// TestListWatch checks that list --watch prints the changes of files and of the store below one header.
func TestListWatch(t *testing.T) {
	t.Parallel()
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

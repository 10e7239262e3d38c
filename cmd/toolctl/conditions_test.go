package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

// stated is an object in the output of 'list -o json'.
type stated struct {
	Status v1.Status `json:"status"`
}

// TestConditionsTurn checks that the time of a condition is the time of its last transition, rather than of a change
// of the object or of a query.
func TestConditionsTurn(t *testing.T) {
	dir := t.TempDir()
	file, server, db := filepath.Join(dir, "tools.yaml"), filepath.Join(dir, "server.yaml"), filepath.Join(dir, "state.db")
	toolctl := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(t.Context(), append(args, "--store", db), bytes.NewReader(nil), &out, &errs); code != exitOK {
			t.Fatalf("%q: exit %d: %s", args, code, &errs)
		}
		return out.String()
	}
	write := func(description string) {
		t.Helper()
		writeFile(t, file, toolText("plain", description)+
			"---\napiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: bound}\nspec: {description: D, input_schema: {type: object}, mcp: {server: files}}\n")
	}
	look := func(name, typ, want string) v1.Condition {
		t.Helper()
		var first v1.Condition
		for i := range 2 {
			var o stated
			if err := json.Unmarshal([]byte(toolctl("list", "tool/"+name, "--no-discover", "-o", "json")), &o); err != nil {
				t.Fatal(err)
			}
			c := o.Status.Condition(typ)
			if c.Status != want {
				t.Fatalf("%s of %s is %+v, want %s", typ, name, c, want)
			}
			if i == 0 {
				first = c
			} else if !c.LastTransitionTime.Equal(first.LastTransitionTime) {
				t.Errorf("%s of %s: since %s, and since %s when seen again", typ, name, first.LastTransitionTime, c.LastTransitionTime)
			}
		}
		return first
	}
	same := func(what string, a, b v1.Condition) {
		t.Helper()
		if !a.LastTransitionTime.Equal(b.LastTransitionTime) {
			t.Errorf("%s: since %s, want %s", what, b.LastTransitionTime, a.LastTransitionTime)
		}
	}
	later := func(what string, a, b v1.Condition) {
		t.Helper()
		if !b.LastTransitionTime.After(a.LastTransitionTime) {
			t.Errorf("%s: since %s, want it after %s", what, b.LastTransitionTime, a.LastTransitionTime)
		}
	}
	write("one")
	writeFile(t, server, "apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: files}\nspec: {command: files-server}\n")
	toolctl("apply", "-f", server, "--set", "servers")
	toolctl("apply", "-f", file, "--set", "s")
	ready, asApplied := look("plain", v1.ConditionReady, "True"), look("plain", v1.ConditionDrifted, "False")

	write("two")
	toolctl("apply", "-f", file, "--set", "s")
	now := look("plain", v1.ConditionReady, "True")
	if same("ready, after a change", ready, now); now.ObservedGeneration != 2 {
		t.Errorf("got generation %d", now.ObservedGeneration)
	}

	write("three")
	toolctl("apply", "-f", file) // applied as another set
	drifted := look("plain", v1.ConditionDrifted, "True")
	later("drifted", asApplied, drifted)
	same("ready, while it drifted", ready, look("plain", v1.ConditionReady, "True"))
	write("two")
	toolctl("apply", "-f", file, "--set", "s")
	later("as applied again", drifted, look("plain", v1.ConditionDrifted, "False"))

	bound := look("bound", v1.ConditionReady, "True")
	toolctl("delete", "mcpserver/files")
	down := look("bound", v1.ConditionReady, "False")
	later("its server is gone", bound, down)
	later("degraded", bound, look("bound", v1.ConditionDegraded, "True"))
	toolctl("apply", "-f", server, "--set", "servers")
	later("its server is back", down, look("bound", v1.ConditionReady, "True"))
	same("ready, all the while", ready, look("plain", v1.ConditionReady, "True"))
}

// TestListWatchStatus checks that list --watch shows the status of objects, and reports when a condition changes.
func TestListWatchStatus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, db := filepath.Join(dir, "tools.yaml"), filepath.Join(dir, "state.db")
	apply := func(mark string, args ...string) {
		t.Helper()
		writeFile(t, file, toolText("a", mark))
		var errs bytes.Buffer
		if code := run(t.Context(), append([]string{"apply", "-f", file, "--store", db}, args...), bytes.NewReader(nil), io.Discard, &errs); code != exitOK {
			t.Fatal(&errs)
		}
	}
	apply("one", "--set", "s")
	for _, args := range [][]string{{"--store", db}, {"-f", dir, "-o", "jsonpath={.status}"}} {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		ended := make(chan int)
		go func() {
			code := run(ctx, append([]string{"list", "tools", "-w", "-o", "json"}, args...), strings.NewReader(""), w, io.Discard)
			_ = w.Close()
			ended <- code
		}()
		next := json.NewDecoder(r)
		status := func() (s v1.Status) {
			t.Helper()
			var err error
			if len(args) == 2 {
				var o stated
				err = next.Decode(&o)
				s = o.Status
			} else {
				err = next.Decode(&s)
			}
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := status()
		if c := s.Condition(v1.ConditionReady); c.Status != "True" || c.LastTransitionTime.IsZero() || len(args) == 2 && s.Set != "s" {
			t.Errorf("got %+v", s)
		}
		if len(args) == 2 {
			apply("two") // applied by another set
			if s := status(); s.Condition(v1.ConditionDrifted).Status != "True" {
				t.Errorf("got %+v", s)
			}
		}
		cancel()
		_, _ = io.Copy(io.Discard, r)
		if code := <-ended; code != exitOK {
			t.Error(fmt.Sprint(args, ": exit ", code))
		}
	}
}

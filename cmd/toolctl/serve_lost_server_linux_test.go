package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolctl.dev/toolctl/internal/until"
)

// TestLostServerTellsCallersNothing checks that only the operator learns why an MCP server ended, because its stderr
// may contain secrets.
func TestLostServerTellsCallersNothing(t *testing.T) {
	dir := t.TempDir()
	const secret, reason = "hunter2-of-stderr", "exit status 3"
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nread line\necho password="+secret+" >&2\nexit 3\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "all.yaml"), `
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: up}
spec: {command: "`+program+`"}
---
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: web}
spec: {url: "http://127.0.0.1:1/internal-path"}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pay, input_schema: {type: object}, mcp: {server: up, tool: pay}, mode: mcp}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: fetch}
spec: {description: Fetch, input_schema: {type: object}, mcp: {server: web, tool: fetch}, mode: mcp}
`)
	writeFile(t, filepath.Join(dir, "tokens"), tokenLine("ann", "1")+tokenLine("eve", "2"))
	p := launchServe(t, again(t, "toolctl"), "-f", filepath.Join(dir, "all.yaml"), "--ui", "--ui-operator", "eve", "--token-file", filepath.Join(dir, "tokens"))
	ann, eve := &bareClient{t: t, token: "1", meta: formsOnly}, &bareClient{t: t, token: "2"}
	older := &bareClient{t: t, token: "1"}
	older.open(p.url)
	ui := strings.TrimSuffix(p.url, "/mcp") + "/ui/api/"
	of := func(w *bareClient, verb, path, body string) string {
		req, err := http.NewRequestWithContext(t.Context(), verb, ui+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+w.token)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, body = read(t, res)
		return body
	}
	until.NoError(t, func() error {
		if page := of(eve, http.MethodGet, "servers", ""); !strings.Contains(page, secret) {
			return fmt.Errorf("an operator is not told why the server ended: %s", page)
		}
		return nil
	})
	for name, ask := range map[string]func() string{
		"call of 2026-07-28": func() string {
			_, body := ann.post(p.url, "tools/call", "pay", `{"name":"pay","arguments":{}}`)
			return body
		},
		"call of 2025-11-25": func() string {
			_, body := older.post(p.url, "tools/call", "", `{"name":"pay","arguments":{}}`)
			return body
		},
		"call over HTTP": func() string {
			_, body := older.post(p.url, "tools/call", "", `{"name":"fetch","arguments":{}}`)
			return body
		},
		"call at the console": func() string { return of(ann, http.MethodPost, "tools/default/pay/call", "{}") },
	} {
		body := ask()
		for _, hidden := range []string{secret, reason, program, "internal-path", "127.0.0.1:1"} {
			if strings.Contains(body, hidden) {
				t.Errorf("%s: the caller is told %q: %s", name, hidden, body)
			}
		}
		if !strings.Contains(body, "operators can see why") {
			t.Errorf("%s: %s", name, body)
		}
	}
	for _, path := range []string{"calls", "servers", "tools", "tools/default/pay"} {
		if body := of(ann, http.MethodGet, path, ""); strings.Contains(body, secret) || strings.Contains(body, reason) || strings.Contains(body, "127.0.0.1:1") {
			t.Errorf("%s of the console: %s", path, body)
		}
	}
	if log, err := os.ReadFile(p.logs); err != nil || !strings.Contains(string(log), secret) || !strings.Contains(string(log), reason) || !strings.Contains(string(log), "internal-path") {
		t.Errorf("the log does not say why: %v\n%s", err, log)
	}
}

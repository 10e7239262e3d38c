package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// silentServer responds to initialize, and to nothing else until the test ends.
func silentServer(t *testing.T) string {
	end := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.Unmarshal(body, &m)
		switch {
		case m.Method == "initialize":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Mcp-Session-Id", "s")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"silent","version":"1"}}}`)
		case m.Method == "server/discover":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32601,"message":"no"}}`)
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case len(m.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
		default:
			select {
			case <-r.Context().Done():
			case <-end:
			}
		}
	}))
	t.Cleanup(func() { close(end); s.CloseClientConnections(); s.Close() })
	return s.URL
}

// TestSilentServer checks that a server that never lists its tools delays only clients that ask for them.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	good := launch(t, again(t, "echo-upstream"))
	dir := t.TempDir()
	manifest := func(timeout, silent string) {
		writeFile(t, filepath.Join(dir, "servers.yaml"), "apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: good}\nspec: {url: "+quoted(good.url+"/sessions")+"}\n---\napiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: silent}\nspec: {"+timeout+"url: "+quoted(silent)+"}\n")
	}
	within := func(what string, most time.Duration, do func()) {
		t.Helper()
		began := time.Now()
		do()
		if took := time.Since(began); took > most {
			t.Errorf("%s took %s, expected at most %s", what, took, most)
		}
	}
	manifest("", silentServer(t))
	s := serveHTTP(t, "-f", dir)
	cs := s.client(t, "2025-11-25", nil)
	within("a call of another server", 4*time.Second, func() {
		res, err := cs.CallTool(t.Context(), callParams("good__echo"))
		if err != nil || res.IsError {
			t.Errorf("%v %v", err, res)
		}
	})
	within("a tool that nobody has", time.Second, func() {
		if _, err := cs.CallTool(t.Context(), callParams("nobody__echo")); err == nil {
			t.Error("it was called")
		}
	})
	within("tools/list", 7*time.Second, func() {
		res, err := cs.ListTools(t.Context(), nil)
		if err != nil || len(res.Tools) == 0 {
			t.Errorf("%v %v", res, err)
		}
	})
	within("call --timeout", 3*time.Second, func() {
		toolctl(t, exitUnavailable, "call", "silent__x", "--timeout", "1s", "-f", dir)
	})
	manifest("timeout_ms: 500, ", silentServer(t))
	within("discovery with timeout_ms", 4*time.Second, func() {
		toolctl(t, exitUnavailable, "call", "silent__x", "-f", dir)
	})
}

func callParams(name string) *sdk.CallToolParams {
	return &sdk.CallToolParams{Name: name, Arguments: map[string]any{"size": 10}}
}

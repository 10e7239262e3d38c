package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func tokenLine(name, token string) string {
	sum := sha256.Sum256([]byte(token))
	return name + ":" + hex.EncodeToString(sum[:]) + "\n"
}

// status sends initialize with a token.
func (s *served) status(t *testing.T, token string) int {
	t.Helper()
	req := s.initialize(t, token)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// initialize returns a request that begins a session.
func (s *served) initialize(t *testing.T, token string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	return req
}

func TestServeReadsItsTokensAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tools, file := filepath.Join(dir, "tools.yaml"), filepath.Join(dir, "tokens")
	writeFile(t, tools, fmt.Sprintf(mockTool, "one"))
	writeFile(t, file, tokenLine("ann", "1"))
	s := serveHTTP(t, "-f", tools, "--token-file", file)
	want := func(statuses ...int) {
		t.Helper()
		for i, want := range statuses {
			if got := s.status(t, fmt.Sprint(i+1)); got != want {
				t.Errorf("token %d: status %d, want %d", i+1, got, want)
			}
		}
	}
	want(200, 401)
	put := func(text string) { // replaces the file, as configuration systems do
		t.Helper()
		writeFile(t, file+".new", text)
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	put(tokenLine("ann", "1") + tokenLine("bob", "2"))
	s.wait(t, `"tokens":2`)
	want(200, 200)

	put("s3cret\n")
	if line := s.wait(t, "the token file cannot be used"); !strings.Contains(line, "line 1: expected NAME:HEX") || strings.Contains(line, "s3cret") {
		t.Errorf("got %s", line)
	}
	want(200, 200)
	if got := s.readyz(t); !strings.Contains(got, `"ready":true`) || !strings.Contains(got, "the token file received at") {
		t.Errorf("readyz: %s", got)
	}

	put(tokenLine("bob", "2"))
	s.wait(t, `"tokens":1`)
	want(401, 200)
	if got := s.readyz(t); strings.Contains(got, "warning") {
		t.Errorf("readyz: %s", got)
	}
}

// floodServer is an MCP server of 2025-11-25 whose tool "flood" returns a gigabyte and whose tool "quick" returns at
// once.
func floodServer(t *testing.T) string {
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"flood","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"flood","inputSchema":{"type":"object"}},{"name":"large","inputSchema":{"type":"object"}},{"name":"quick","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			w.Header().Set("Content-Type", "application/json")
			size := map[string]int{"flood": 1 << 10, "large": 20, "quick": 0}[m.Params.Name]
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
			for range size {
				if _, err := w.Write(chunk); err != nil {
					return // the gateway has closed the connection
				}
			}
			_, _ = io.WriteString(w, `"}]}}`)
			return
		default:
			if m.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			if r.Method != http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestServeSurvivesAFlood checks that a flooding upstream fails only its own call, and needs no more memory than the
// message limit.
func TestServeSurvivesAFlood(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.yaml")
	writeFile(t, file, `
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: up}
spec: {url: "`+floodServer(t)+`"}
`)
	s := serveHTTP(t, "-f", file, "--max-result-bytes", "1000000")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		flooded, other := s.client(t, version, nil), s.client(t, version, nil)
		call := func(cs *sdk.ClientSession, name string) (bool, string) {
			res, err := cs.CallTool(context.Background(), &sdk.CallToolParams{Name: name})
			if err != nil {
				t.Errorf("%s %s: %v", version, name, err)
				return false, ""
			}
			return res.IsError, res.Content[0].(*sdk.TextContent).Text
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		ended := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			defer close(ended)
			if failed, text := call(flooded, "up__flood"); !failed || !strings.Contains(text, "larger than") {
				t.Errorf("%s: the flood: %v, %.200s", version, failed, text)
			}
		})
		group.Go(func() {
			for {
				if failed, text := call(other, "up__quick"); failed || text != "" {
					t.Errorf("%s: beside the flood: %v, %.200s", version, failed, text)
				}
				select {
				case <-ended:
					return
				default:
				}
			}
		})
		group.Wait()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 512<<20 {
			t.Errorf("%s: the heap grew by %d MiB for an answer of 1024", version, grown>>20)
		}
		if failed, text := call(flooded, "up__large"); !failed || !strings.Contains(text, `tool "up__large": the call was made, but its result of 20971520 bytes exceeds the limit`) {
			t.Errorf("%s: %v, %.200s", version, failed, text)
		}
	}
}

// TestServeSessions checks that more than 1024 sessions fit, and that with --max-sessions the oldest session is closed
// for a new one.
func TestServeSessions(t *testing.T) {
	t.Parallel()
	begin := func(s *served) string {
		res, err := http.DefaultClient.Do(s.initialize(t, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res.Status, err)
		}
		return res.Header.Get("Mcp-Session-Id")
	}
	ends := func(s *served, session string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Session-Id", session)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	many := serveHTTP(t, "-f", "../../manifests/weather.yaml")
	for range 1100 {
		begin(many)
	}
	few := serveHTTP(t, "-f", "../../manifests/weather.yaml", "--max-sessions", "2")
	sessions := []string{begin(few), begin(few), begin(few)}
	few.wait(t, "to make room")
	for i, want := range []int{404, 204, 204} {
		if got := ends(few, sessions[i]); got != want {
			t.Errorf("session %d: got %d, want %d", i+1, got, want)
		}
	}
}

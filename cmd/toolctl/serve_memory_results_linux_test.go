package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// largeUpstream starts an MCP server and an HTTP API that return the same large result.
func largeUpstream(t *testing.T, objects string) string {
	t.Helper()
	text, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]string{
		"structured": `{"content":[],"structuredContent":{"a":` + objects + `}}`,
		"checked":    `{"content":[],"structuredContent":{"a":` + objects + `}}`,
		"text":       `{"content":[{"type":"text","text":` + string(text) + `}]}`,
	}
	const tools = `{"tools":[{"name":"structured","inputSchema":{"type":"object"}},{"name":"text","inputSchema":{"type":"object"}},` +
		`{"name":"checked","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}}}}]}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
				URI  string `json:"uri"`
			} `json:"params"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.URL.Path == "/data" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, objects)
			return
		}
		answer := `{}`
		switch m.Method {
		case "initialize":
			answer = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"large","version":"1"}}`
		case "tools/list":
			answer = tools
		case "tools/call":
			answer = results[m.Params.Name]
		case "notifications/initialized", "notifications/cancelled":
			w.WriteHeader(http.StatusAccepted)
			return
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, answer)
		if strings.HasSuffix(r.URL.Path, "/events") {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: message\ndata: "+body+"\n\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestServeMemoryOfResults checks that many concurrent results, whose few megabytes grow a hundredfold in memory, do
// not use up the memory of the machine, and that ordinary calls continue. The error for a result that does not fit
// says so.
func TestServeMemoryOfResults(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes several times the memory: the limit is checked without it")
	}
	var objects strings.Builder
	objects.WriteByte('[')
	for i := range 240_000 {
		fmt.Fprintf(&objects, `{"i":%d},`, i)
	}
	objects.WriteString(`{}]`)
	at := largeUpstream(t, objects.String())
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "all.yaml"), strings.ReplaceAll(`
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: whole}
spec: {url: "AT/"}
---
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: events}
spec: {url: "AT/events"}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: plain}
spec: {description: Plain, input_schema: {type: object}, mock_result: {ok: true}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: api}
spec: {description: API, input_schema: {type: object}, output_schema: {type: array, items: {type: object}}, http: {url: "AT/data", method: GET}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: mapped}
spec: {description: Mapped, input_schema: {type: object}, http: {url: "AT/data", method: GET, response: {body_mapping: "length(@)"}}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: masked}
spec: {description: Masked, redact: [i], input_schema: {type: object}, output_schema: {type: array, items: {type: object}}, http: {url: "AT/data", method: GET}}
`, "AT", at))
	many, long := 6, soak(t) > 0
	if long {
		many = 32
	}
	for i, tool := range []string{"whole__checked", "events__checked", "api", "mapped", "masked", "whole__text", "whole__structured", "events__text"} {
		if !long && i > 0 { // .ci/run has the others
			continue
		}
		version := []string{"2025-11-25", "2026-07-28"}[i%2]
		t.Run(tool+" "+version, func(t *testing.T) {
			s := launchServe(t, again(t, "toolctl"), "-f", dir, "--allow-private-network")
			ordinary := newCaller(t, s.url, openWire(t, s.url, version).request(s.url, 1, "plain", `{}`))
			warm := newCaller(t, s.url, openWire(t, s.url, version).request(s.url, 1, tool, `{}`))
			if _, err := warm.call(); err != nil {
				t.Fatal("alone: ", err)
			}
			began := time.Now()
			counts := map[string]int{}
			var mu sync.Mutex
			var heavy sync.WaitGroup
			for i := range many {
				c := newCaller(t, s.url, openWire(t, s.url, version).request(s.url, i, tool, `{}`))
				heavy.Go(func() {
					answer, err := c.call()
					outcome := "answered"
					switch {
					case err == nil && len(answer) == 0:
						outcome = "empty"
					case err != nil && strings.Contains(err.Error(), "try again later"):
						outcome = "refused"
					case err != nil:
						outcome = err.Error()
					}
					mu.Lock()
					counts[outcome]++
					mu.Unlock()
				})
			}
			ended := make(chan struct{})
			go func() { heavy.Wait(); close(ended) }()
			calls, slowest := 0, time.Duration(0)
			for busy := true; busy; calls++ {
				start := time.Now()
				if _, err := ordinary.call(); err != nil {
					t.Fatal("an ordinary call: ", err)
				}
				slowest = max(slowest, time.Since(start))
				select {
				case <-ended:
					busy = false
				default:
				}
			}
			peak := s.memory(t, "VmHWM")
			t.Logf("%d results of %.1f MB: %v; %d ordinary calls meanwhile, the slowest in %s; memory at most %.0f MB; %s",
				many, float64(objects.Len())/1e6, counts, calls, slowest.Round(time.Millisecond), peak, time.Since(began).Round(time.Millisecond))
			if counts["answered"]+counts["refused"] != many || counts["answered"] == 0 {
				t.Errorf("answers: %v", counts)
			}
			if long && peak > 600 {
				t.Errorf("%.0f MB of memory", peak)
			}
		})
	}
}

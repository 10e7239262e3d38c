package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"256MiB": 256 << 20, "256Mi": 256 << 20, "1 GiB": 1 << 30, "5MB": 5_000_000, "100": 100, "": 0, "x": 0, "-5": 0, "0": 0, "1.5GiB": 3 << 29, "9223372036854775807K": 0, "5 apples": 0} {
		if got, err := parseBytes(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d %v, want %d", text, got, err, want)
		}
	}
}

// TestServeMemory checks that many concurrent requests, whose few megabytes grow a hundredfold in memory, do not use
// up the memory of the machine, and that ordinary calls continue.
func TestServeMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes several times the memory: the limit is checked without it")
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "tools.yaml"), `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: plain}
spec: {description: Plain, input_schema: {type: object, properties: {a: {type: array, items: {type: object}}}}, mock_result: {ok: true}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: unique}
spec: {description: Unique, input_schema: {type: object, properties: {a: {type: array, uniqueItems: true}}}, mock_result: {ok: true}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: unique-07}
spec: {description: Unique, input_schema: {$schema: "http://json-schema.org/draft-07/schema#", type: object, properties: {a: {type: array, uniqueItems: true}}}, mock_result: {ok: true}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: wrong}
spec: {description: Wrong, input_schema: {type: object, properties: {a: {type: array, items: {type: array, minItems: 2, items: {type: string}}}}}, mock_result: {ok: true}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: wrong-07}
spec: {description: Wrong, input_schema: {$schema: "http://json-schema.org/draft-07/schema#", type: object, properties: {a: {type: array, items: {type: array, minItems: 2, items: {type: string}}}}}, mock_result: {ok: true}}
`)
	w := wire{version: "2026-07-28"}
	var numbered strings.Builder
	for i := range 240_000 {
		fmt.Fprintf(&numbered, `{"i":%d},`, i)
	}
	usual := []string{"plain", "unique", "unique-07"}
	shapes := map[string]string{
		"numbered": `{"a":[` + numbered.String() + `{}]}`,
		"empty":    `{"a":[` + strings.Repeat("{},", 400_000) + `{}]}`,
		"members":  `{"a":[` + strings.Repeat(`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9},`, 45_000) + `{}]}`,
		// These values all violate their schema.
		"lists":   `{"a":[` + strings.Repeat(`[[]],`, 150_000) + `[]]}`,
		"scalars": `{"a":[` + strings.Repeat(`1,`, 490_000) + `1]}`,
	}
	for shape, args := range shapes {
		tools := usual
		if shape == "lists" || shape == "scalars" {
			tools = []string{"wrong", "wrong-07"}
		}
		for _, tool := range tools {
			if usual := shape == "numbered" && tool == "unique"; usual != (soak(t) == 0) { // .ci/run has the others, after this one
				continue
			}
			t.Run(shape+" "+tool, func(t *testing.T) {
				s := launchServe(t, again(t, "toolctl"), "-f", dir)
				began := time.Now()
				counts := map[int]int{}
				var mu sync.Mutex
				var heavy sync.WaitGroup
				_, body, _ := strings.Cut(string(w.request(s.url, 1, tool, args)), "\r\n\r\n")
				for range 32 {
					heavy.Go(func() {
						req, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader(body))
						if err != nil {
							t.Error(err)
							return
						}
						req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {w.version}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool}}
						res, err := http.DefaultClient.Do(req)
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, res.Body)
						res.Body.Close()
						mu.Lock()
						counts[res.StatusCode]++
						mu.Unlock()
					})
				}
				ended := make(chan struct{})
				go func() { heavy.Wait(); close(ended) }()
				ordinary := newCaller(t, s.url, w.request(s.url, 1, "plain", `{"a":[{"i":1}]}`))
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
				t.Logf("32 requests of %.1f MB: %v; %d ordinary calls meanwhile, the slowest in %s; memory at most %.0f MB; %s",
					float64(len(args))/1e6, counts, calls, slowest.Round(time.Millisecond), peak, time.Since(began).Round(time.Millisecond))
				if counts[200]+counts[503] != 32 || counts[200] == 0 {
					t.Errorf("statuses: %v", counts)
				}
				if peak > 600 {
					t.Errorf("%.0f MB of memory", peak)
				}
			})
		}
	}
}

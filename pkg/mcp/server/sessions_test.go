package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// At the maximum number of sessions, the session that was idle longest makes room. A session with a stream
// or a running call never does, and without an idle session a new one is refused.
func TestTheSessionIdleLongestMakesRoom(t *testing.T) {
	c := catalogOf(offer("", "wait"))
	began, release := make(chan struct{}), make(chan struct{})
	c.do = func(context.Context, v1.Call) (v1.Result, error) {
		close(began)
		<-release
		return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`"late"`)}, nil
	}
	var l logs
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	e := listen(t, server.New(c, server.Options{Logger: l.logger(), MeterProvider: meters}), server.HTTPOptions{MaxSessions: 3})
	begin := func() string {
		res, text := send(t, "POST", e.url+"/mcp", initialize)
		if res.StatusCode != 200 {
			t.Fatalf("got %d %s", res.StatusCode, text)
		}
		return res.Header.Get("Mcp-Session-Id")
	}
	status := func(session string) int {
		res, _ := send(t, "POST", e.url+"/mcp", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", session)
		return res.StatusCode
	}
	listens := func(session string) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", e.url+"/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": {session}}
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		t.Cleanup(func() { res.Body.Close() })
	}

	streaming, used, idle := begin(), begin(), begin()
	listens(streaming)
	if got := status(used); got != 200 {
		t.Fatal(got)
	}
	calling := begin()
	if got := status(idle); got != 404 {
		t.Errorf("the session that was idle longest: %d", got)
	}
	ended := make(chan string, 1)
	go func() {
		_, text := send(t, "POST", e.url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`, "Mcp-Session-Id", calling)
		ended <- text
	}()
	<-began
	last := begin() // in place of used
	listens(last)
	if res, text := send(t, "POST", e.url+"/mcp", initialize); res.StatusCode != 503 || !strings.Contains(text, "too many sessions at once") || res.Header.Get("Retry-After") == "" {
		t.Errorf("while each session is used: %d %s", res.StatusCode, text)
	}
	for session, want := range map[string]int{streaming: 200, used: 404, calling: 200, last: 200} {
		if got := status(session); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	close(release)
	if got := <-ended; !strings.Contains(got, "late") {
		t.Errorf("the call: %s", got)
	}
	if got := strings.Count(l.String(), "to make room"); got != 1 {
		t.Errorf("%d lines in the log of sessions that made room: %s", got, l.String())
	}
	counts := readCounts(t, reader)
	if counts["toolctl.mcp.sessions.evicted"] != 2 || counts["toolctl.mcp.streams"] != 2 || counts["toolctl.mcp.sessions"] != 3 {
		t.Errorf("counted %v", counts)
	}
}

// readCounts returns the sums of the counters by name.
func readCounts(t *testing.T, r sdkmetric.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				for _, p := range sum.DataPoints {
					counts[m.Name] += p.Value
				}
			}
		}
	}
	return counts
}

// TestUnknownMethodInASession checks that the response follows JSON-RPC (section 5.1) and is not plain
// text.
func TestUnknownMethodInASession(t *testing.T) {
	e := listen(t, server.New(catalogOf(offer("", "one")), server.Options{}), server.HTTPOptions{})
	res, _ := send(t, "POST", e.url+"/mcp", initialize)
	res, text := send(t, "POST", e.url+"/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/cal","params":{}}`, "Mcp-Session-Id", res.Header.Get("Mcp-Session-Id"))
	if res.StatusCode != 200 || !strings.Contains(text, `"id":7`) || !strings.Contains(text, `"code":-32601`) {
		t.Errorf("got %d %s", res.StatusCode, text)
	}
}

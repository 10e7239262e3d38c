package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector collects the spans that it receives.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
}

func newCollector(t *testing.T) *collector {
	c := new(collector)
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			return
		}
		q := new(collectortrace.ExportTraceServiceRequest)
		if err := proto.Unmarshal(body, q); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, rs := range q.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	for _, key := range []string{"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL", "TRACEPARENT"} {
		t.Setenv(key, "")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	return c
}

// trace returns the spans of a trace as a tree of names, and as a map by name.
func (c *collector) trace(t *testing.T, id string) (tree string, byName map[string]*tracepb.Span) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	byName = map[string]*tracepb.Span{}
	children := map[string][]*tracepb.Span{}
	known := map[string]bool{}
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == id {
			byName[s.Name] = s
			known[string(s.SpanId)] = true
			children[string(s.ParentSpanId)] = append(children[string(s.ParentSpanId)], s)
		}
	}
	var b strings.Builder
	var print func(parent string, depth int)
	print = func(parent string, depth int) {
		slices.SortFunc(children[parent], func(a, b *tracepb.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
		for _, s := range children[parent] {
			fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", depth), s.Name)
			print(string(s.SpanId), depth+1)
		}
	}
	for parent := range children {
		if !known[parent] {
			print(parent, 0)
		}
	}
	return b.String(), byName
}

func attrsOf(kvs []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range kvs {
		out[kv.Key] = kv.Value.GetStringValue()
	}
	return out
}

// TestServeTelemetry checks that a call through serve is one trace, from its client to the API or the MCP server, for
// every way in which a client can name the trace.
func TestServeTelemetry(t *testing.T) {
	const secret = "hunter2"
	var mu sync.Mutex
	seen := map[string]string{} // traceparent and baggage by upstream
	note := func(upstream, parent, baggage string) {
		mu.Lock()
		defer mu.Unlock()
		seen[upstream], seen[upstream+" baggage"] = parent, baggage
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note("api", r.Header.Get("traceparent"), r.Header.Get("baggage"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	t.Cleanup(api.Close)
	upstream := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	upstream.AddTool(&sdk.Tool{Name: "find", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		parent, _ := r.Params.Meta["traceparent"].(string)
		baggage, _ := r.Params.Meta["baggage"].(string)
		note("mcp", parent, baggage)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "found"}}}, nil
	})
	mcpServer := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return upstream }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(mcpServer.Close)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "tools.yaml"), fmt.Sprintf(`
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: hit}
spec: {description: Calls, input_schema: {type: object}, http: {url: "%s", method: POST}}
---
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: notes}
spec: {url: "%s"}
`, api.URL, mcpServer.URL))

	const apiTree = `tools/call hit
  execute_tool hit
    validate arguments
    policy
    execute
    validate result
    audit
`
	const mcpTree = `tools/call notes__find
  execute_tool notes__find
    validate arguments
    policy
    execute
      tools/call find
    validate result
    audit
`
	for _, tc := range []struct {
		name, version, tool, tree, last string
		headers                         bool
	}{
		{name: "_meta, API, sessions", version: "2025-11-25", tool: "hit", tree: apiTree, last: "execute"},
		{name: "_meta, API, modern", version: "2026-07-28", tool: "hit", tree: apiTree, last: "execute"},
		{name: "headers, API, modern", version: "2026-07-28", tool: "hit", tree: apiTree, last: "execute", headers: true},
		{name: "_meta, MCP, sessions", version: "2025-11-25", tool: "notes__find", tree: mcpTree, last: "tools/call find"},
		{name: "_meta, MCP, modern", version: "2026-07-28", tool: "notes__find", tree: mcpTree, last: "tools/call find"},
		{name: "headers, MCP, sessions", version: "2025-11-25", tool: "notes__find", tree: mcpTree, last: "tools/call find", headers: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sink := newCollector(t)
			s := serveHTTP(t, "-f", dir, "--store", filepath.Join(t.TempDir(), "state.db"), "--allow-private-network")
			const id, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
			texts := map[string]string{"traceparent": "00-" + id + "-" + caller + "-01", "baggage": "tenant=x"}
			params := &sdk.CallToolParams{Name: tc.tool, Arguments: map[string]any{"pin": secret}}
			transport := &headerTransport{base: http.DefaultTransport.(*http.Transport).Clone()}
			if tc.headers {
				transport.texts = texts
			} else {
				params.Meta = sdk.Meta{"traceparent": texts["traceparent"], "baggage": texts["baggage"]}
			}
			cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
				&sdk.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: transport}, DisableStandaloneSSE: true},
				&sdk.ClientSessionOptions{ProtocolVersion: tc.version})
			if err != nil {
				t.Fatal(err)
			}
			if res, err := cs.CallTool(t.Context(), params); err != nil || res.IsError {
				t.Fatal(resultJSON(res), err)
			}
			line := s.wait(t, `"msg":"call"`)
			cs.Close()
			transport.base.CloseIdleConnections()
			s.stop()
			code := <-s.ended
			s.ended <- code // for the cleanup

			sink.mu.Lock()
			for _, span := range sink.spans { // including the spans of initialize and tools/list
				if strings.Contains(span.String(), secret) {
					t.Errorf("a span shows the arguments: %s", span)
				}
			}
			sink.mu.Unlock()
			tree, spans := sink.trace(t, id)
			if tc.headers { // other requests of the client also have the header
				tree = tree[max(0, strings.Index(tree, "tools/call")):]
			}
			if !strings.HasPrefix(tree, tc.tree) {
				t.Fatalf("the trace is\n%swant\n%s", tree, tc.tree)
			}
			root := spans["tools/call "+tc.tool]
			if got := hex.EncodeToString(root.ParentSpanId); got != caller || root.Kind != tracepb.Span_SPAN_KIND_SERVER {
				t.Errorf("the parent is %s, want %s; kind %s", got, caller, root.Kind)
			}
			attrs := attrsOf(root.Attributes)
			want := map[string]string{"mcp.method.name": "tools/call", "gen_ai.tool.name": tc.tool, "gen_ai.operation.name": "execute_tool",
				"network.transport": "tcp", "network.protocol.name": "http", "mcp.protocol.version": tc.version}
			if session, ok := attrs["mcp.session.id"]; ok != (tc.version == "2025-11-25") || ok && !strings.Contains(line, `"session":"`+session+`"`) {
				t.Errorf("session %q, and the log has %s", session, line)
			}
			delete(attrs, "mcp.session.id")
			if fmt.Sprint(attrs) != fmt.Sprint(want) {
				t.Errorf("attributes %v, want %v", attrs, want)
			}
			at := "mcp"
			if tc.tool == "hit" {
				at = "api"
			}
			mu.Lock()
			defer mu.Unlock()
			if want := fmt.Sprintf("00-%s-%x-01", id, spans[tc.last].SpanId); seen[at] != want || seen[at+" baggage"] != "tenant=x" {
				t.Errorf("the upstream got %q and %q, want %q", seen[at], seen[at+" baggage"], want)
			}
			if want := fmt.Sprintf(`"trace_id":"%s","span_id":"%x"`, id, root.SpanId); !strings.Contains(line, want) {
				t.Errorf("the log has %s, want %s", line, want)
			}
		})
	}

	t.Run("passed on without an exporter", func(t *testing.T) {
		for _, key := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_EXPORTER", "TRACEPARENT"} {
			t.Setenv(key, "")
		}
		s := serveHTTP(t, "-f", dir, "--allow-private-network")
		cs := s.client(t, "2026-07-28", nil)
		const parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00"
		for tool, at := range map[string]string{"hit": "api", "notes__find": "mcp"} {
			params := &sdk.CallToolParams{Name: tool, Meta: sdk.Meta{"traceparent": parent}}
			if res, err := cs.CallTool(t.Context(), params); err != nil || res.IsError {
				t.Fatal(resultJSON(res), err)
			}
			mu.Lock()
			if seen[at] != parent {
				t.Errorf("%s got %q", at, seen[at])
			}
			mu.Unlock()
		}
	})
}

// headerTransport adds headers to requests.
type headerTransport struct {
	base  *http.Transport
	texts map[string]string
}

func (h *headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range h.texts {
		r.Header.Set(k, v)
	}
	return h.base.RoundTrip(r)
}

// TestCallTelemetry checks that a command joins the trace of the job that runs it, and sends its spans before it ends.
func TestCallTelemetry(t *testing.T) {
	sink := newCollector(t)
	t.Setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	file := filepath.Join(t.TempDir(), "tool.yaml")
	writeFile(t, file, fmt.Sprintf(mockTool, "one"))
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"call", "-f", file, "one"}, strings.NewReader(""), &out, &errs); code != exitOK || errs.String() != "" {
		t.Fatal(code, errs.String())
	}
	tree, spans := sink.trace(t, "0af7651916cd43dd8448eb211c80319c")
	if tree != "execute_tool one\n  validate arguments\n  policy\n  execute\n  validate result\n" {
		t.Errorf("the trace is\n%s", tree)
	}
	if got := hex.EncodeToString(spans["execute_tool one"].ParentSpanId); got != "b7ad6b7169203331" {
		t.Errorf("the parent is %s", got)
	}
}

// TestServeMetrics checks that the metrics report the calls, and that an unknown tool name creates no time series.
func TestServeMetrics(t *testing.T) {
	for _, key := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_METRICS_EXPORTER", "OTEL_TRACES_EXPORTER"} {
		t.Setenv(key, "")
	}
	dir := t.TempDir()
	upstream := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	upstream.AddTool(&sdk.Tool{Name: "find", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no"}}}, nil
	})
	up := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return upstream }, nil))
	t.Cleanup(up.Close) // runs after serve has ended, because Close waits for its sessions
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	writeFile(t, filepath.Join(dir, "tools.yaml"), fmt.Sprintf(mockTool, "one")+"---"+fmt.Sprintf(mockTool, "stop")+fmt.Sprintf(`
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: caps}
spec: {limits: [{tools: [stop], max_calls: 0, per: session}]}
---
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: notes}
spec: {url: "%s", allow_private_network: true}
---
apiVersion: toolctl.dev/v1
kind: MCPServer
metadata: {name: gone}
spec: {url: "http://%s", allow_private_network: true}
`, up.URL, gone.Addr()))
	var scrape string
	s := serveHTTP(t, "-f", dir, "--metrics-addr", "127.0.0.1:0")
	for _, l := range s.all() {
		var at struct{ Msg, URL string }
		if json.Unmarshal([]byte(l), &at) == nil && at.Msg == "metrics" {
			scrape = at.URL
		}
	}
	if !strings.HasSuffix(scrape, "/metrics") {
		t.Fatalf("the log has no address of /metrics: %q", s.all())
	}
	cs := s.client(t, "2025-11-25", nil)
	toolNames(t, cs) // makes serve query every server
	for _, name := range []string{"one", "one", "stop", "notes__find", "nobody-hunter2"} {
		_, _ = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{"pin": "hunter2"}})
	}
	text := get(t, scrape)
	for _, want := range []string{
		`toolctl_call_duration_seconds_count{gen_ai_tool_name="one",toolctl_namespace="default",toolctl_status="complete"} 2`,
		`toolctl_call_duration_seconds_count{error_type="policy_refused",gen_ai_tool_name="stop",toolctl_namespace="default",toolctl_status="failed"} 1`,
		`toolctl_call_duration_seconds_count{error_type="execution_failed",gen_ai_tool_name="notes__find",toolctl_namespace="default",toolctl_status="failed"} 1`,
		`toolctl_policy_refusals_total{gen_ai_tool_name="stop",toolctl_namespace="default",toolctl_policy_name="caps",toolctl_policy_rule="limits[0]"} 1`,
		`toolctl_calls_active 0`,
		`toolctl_mcp_sessions 1`,
		`toolctl_mcpserver_ready{toolctl_mcpserver="notes",toolctl_namespace="default"} 1`,
		`toolctl_mcpserver_ready{toolctl_mcpserver="gone",toolctl_namespace="default"} 0`,
		`mcp_server_operation_duration_seconds_count{gen_ai_operation_name="execute_tool",gen_ai_tool_name="one",mcp_method_name="tools/call",mcp_protocol_version="2025-11-25",network_protocol_name="http",network_transport="tcp"} 2`,
		`mcp_server_operation_duration_seconds_count{error_type="-32602",gen_ai_operation_name="execute_tool",mcp_method_name="tools/call",mcp_protocol_version="2025-11-25",network_protocol_name="http",network_transport="tcp",rpc_response_status_code="-32602"} 1`,
		`mcp_client_operation_duration_seconds_count{error_type="tool_error",gen_ai_operation_name="execute_tool",gen_ai_tool_name="find",mcp_method_name="tools/call",network_protocol_name="http",network_transport="tcp",toolctl_mcpserver="notes",toolctl_namespace="default"} 1`,
		"\ngo_goroutines ", "\nprocess_cpu_seconds_total ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, regexp.MustCompile(`(?m)^(#|go_|.*_bucket).*\n`).ReplaceAllString(text, ""))
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("the metrics show what a client sent")
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scrape, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("by another name: status %d", res.StatusCode)
	}
}

// all returns the whole log so far.
func (s *served) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(slices.Clone(s.past), s.lines...)
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	return string(body)
}

// resultJSON returns a result as JSON.
func resultJSON(res *sdk.CallToolResult) string {
	text, err := json.Marshal(res)
	return fmt.Sprint(string(text), err)
}

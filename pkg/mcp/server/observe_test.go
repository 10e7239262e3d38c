package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/baggage"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// A request over stdin and stdout has its own span in the trace that its _meta names, and invalid trace
// data is not a reason to refuse it.
func TestSpansOverStdio(t *testing.T) {
	const id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, tc := range []struct {
		name   string
		tool   string
		meta   sdk.Meta
		call   error
		span   string
		attrs  string
		remote bool
		tenant string
	}{
		{name: "in a trace", tool: "do", meta: sdk.Meta{"traceparent": "00-" + id + "-" + parent + "-01", "baggage": "tenant=x"}, remote: true, tenant: "x",
			span: "tools/call do", attrs: "gen_ai.operation.name=execute_tool gen_ai.tool.name=do mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.transport=pipe"},
		{name: "a failure", tool: "do", call: &v1.PolicyError{Tool: "do", Message: "hunter2"}, span: "tools/call do",
			attrs: "error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=do mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.transport=pipe"},
		{name: "an unknown tool", tool: "hunter2", span: "tools/call",
			attrs: "error.type=-32602 gen_ai.operation.name=execute_tool mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.transport=pipe rpc.response.status_code=-32602"},
		{name: "what is no trace", tool: "do", meta: sdk.Meta{"traceparent": 7, "baggage": "=;", "tracestate": []any{}}, span: "tools/call do",
			attrs: "gen_ai.operation.name=execute_tool gen_ai.tool.name=do mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.transport=pipe"},
		{name: "a trace that is too long", tool: "do", meta: sdk.Meta{"traceparent": "00-" + id + "-" + parent + "-01" + strings.Repeat("-", 9000), "baggage": strings.Repeat("a=b,", 3000)}, span: "tools/call do",
			attrs: "gen_ai.operation.name=execute_tool gen_ai.tool.name=do mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.transport=pipe"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spans := tracetest.NewInMemoryExporter()
			c := catalogOf(offer("", "do"))
			var inside trace.SpanContext
			var tenant string
			c.do = func(ctx context.Context, _ v1.Call) (v1.Result, error) {
				inside, tenant = trace.SpanContextFromContext(ctx), baggage.FromContext(ctx).Member("tenant").Value()
				return v1.Result{Status: v1.StatusComplete}, tc.call
			}
			s := server.New(c, server.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
			cs := overStdio(t, s, "2025-11-25", nil)
			_, _ = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: tc.tool, Meta: tc.meta, Arguments: map[string]any{"pin": "hunter2"}})
			if err := cs.Ping(t.Context(), nil); err != nil { // the span of the call has ended
				t.Fatal(err)
			}
			all := spans.GetSpans()
			if text := fmt.Sprintf("%+v", all); strings.Contains(text, "hunter2") {
				t.Errorf("a span shows what a client sent: %s", text)
			}
			i := slices.IndexFunc(all, func(s tracetest.SpanStub) bool { return strings.HasPrefix(s.Name, "tools/call") })
			if i < 0 {
				t.Fatalf("no span in %+v", all)
			}
			got := all[i]
			var attrs []string
			for _, kv := range got.Attributes {
				attrs = append(attrs, fmt.Sprintf("%s=%s", kv.Key, kv.Value.String()))
			}
			slices.Sort(attrs)
			if text := strings.Join(attrs, " "); got.Name != tc.span || text != tc.attrs {
				t.Errorf("span %q with %s\nwant %q with %s", got.Name, text, tc.span, tc.attrs)
			}
			if got.Parent.IsRemote() != tc.remote || tc.remote && (got.Parent.SpanID().String() != parent || got.SpanContext.TraceID().String() != id) {
				t.Errorf("parent %s of trace %s", got.Parent.SpanID(), got.SpanContext.TraceID())
			}
			if tc.tool == "do" && inside.SpanID() != got.SpanContext.SpanID() || tenant != tc.tenant {
				t.Errorf("the call sees span %s and tenant %q", inside.SpanID(), tenant)
			}
		})
	}
}

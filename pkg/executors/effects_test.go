package executors

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
)

// upstreamFunc is an [Upstream] that calls a function.
type upstreamFunc func() (v1.Result, error)

func (f upstreamFunc) Call(context.Context, v1.Key, string, json.RawMessage, bool) (v1.Result, error) {
	return f()
}

func TestEffects(t *testing.T) {
	srv, _ := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reset" {
			reset(t, w)
			return
		}
		w.WriteHeader(418)
		io.WriteString(w, `"secret"`)
	})
	host := srv.Listener.Addr().String()
	httpTool := func(path string) *v1.Tool {
		return httpToolOf(quick(v1.HTTPSpec{URL: srv.URL + path + "?key=${KEY}&q={{.q}}", Method: "POST"}))
	}
	mcpTool := &v1.Tool{Header: v1.Header{Metadata: v1.Metadata{Name: "t", Namespace: "ns"}}, Spec: v1.ToolSpec{MCP: &v1.MCPToolSpec{Server: "s"}}}
	tests := []struct {
		name string
		exec Executor
		tool *v1.Tool
		args string
		want []v1.Effect
	}{
		{"a refused request, without the secret and the argument", newTestHTTP(t, map[string]string{"KEY": "very-secret"}), httpTool("/"), `{"q":"private"}`,
			[]v1.Effect{{Kind: "http", Method: "POST", URL: srv.URL + "/", Host: host, HTTPStatus: 418}}},
		{"a request without an answer", newTestHTTP(t, map[string]string{"KEY": "k"}), httpTool("/reset"), `{"q":"x"}`,
			[]v1.Effect{{Kind: "http", Method: "POST", URL: srv.URL + "/reset", Host: host}}},
		{"a request that was never sent", newTestHTTP(t, nil), httpTool("/"), `{"q":"x"}`, nil},
		{"MCP", mcp{upstreamFunc(func() (v1.Result, error) { return v1.Result{Attempts: 1}, nil })}, mcpTool, `{}`, []v1.Effect{{Kind: "mcp", Server: "ns/s", Tool: "t"}}},
		{"MCP, lost in the call", mcp{upstreamFunc(func() (v1.Result, error) { return v1.Result{Attempts: 1}, &v1.MCPError{Server: "s"} })}, mcpTool, `{}`, []v1.Effect{{Kind: "mcp", Server: "ns/s", Tool: "t"}}},
		{"MCP, no such server", mcp{upstreamFunc(func() (v1.Result, error) { return v1.Result{}, &v1.NotFoundError{} })}, mcpTool, `{}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, _ := tt.exec.Execute(t.Context(), tt.tool, json.RawMessage(tt.args))
			if d := cmp.Diff(tt.want, res.Effects); d != "" {
				t.Errorf("effects (-want +got):\n%s", d)
			}
		})
	}
}

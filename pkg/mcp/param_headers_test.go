package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// Marked arguments are also sent as headers, which the SDK's server compares with the arguments.
func TestParamHeaders(t *testing.T) {
	s := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
		"n":{"type":"integer","x-mcp-header":"N"},"in":{"type":"object","properties":{"on":{"type":"boolean","x-mcp-header":"On"}}}}}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "1"}}}, nil
		})
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true})
	var seen http.Header
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			seen = r.Header.Clone()
		}
		h.ServeHTTP(w, r)
	}))
	defer at.Close()
	u := mcp.NewUpstreams([]*v1.MCPServer{web("s", at.URL)}, mcp.Options{})
	defer u.Close()
	u.Discover(t.Context())
	for _, tc := range []struct {
		args string
		want map[string]string
	}{
		{`{"region":"eu","n":7,"in":{"on":true}}`, map[string]string{"Region": "eu", "N": "7", "On": "true"}},
		{`{"region":" Zürich","n":-1}`, map[string]string{"Region": "=?base64?IFrDvHJpY2g=?=", "N": "-1"}},
		{`{"region":"=?base64?eA==?="}`, map[string]string{"Region": "=?base64?PT9iYXNlNjQ/ZUE9PT89?="}},
		{`{"region":null}`, nil},
		{`{}`, nil},
	} {
		res, err := u.Call(t.Context(), key("s"), "t", json.RawMessage(tc.args), false)
		if err != nil || string(res.Content) != "1" {
			t.Errorf("%s: %s, %v", tc.args, res.Content, err)
			continue
		}
		for _, name := range []string{"Region", "N", "On"} {
			if got := seen.Get("Mcp-Param-" + name); got != tc.want[name] {
				t.Errorf("%s: %s is %q, expected %q", tc.args, name, got, tc.want[name])
			}
		}
	}
}

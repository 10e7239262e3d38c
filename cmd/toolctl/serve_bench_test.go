package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkServe compares a call through toolctl serve, with a counting policy and both validations, with its floor: a
// server of the SDK alone that gives the same response.
func BenchmarkServe(b *testing.B) {
	dir := b.TempDir()
	writeFile(b, filepath.Join(dir, "tools.yaml"), `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: weather}
spec:
  description: Weather
  input_schema: {type: object, properties: {location: {type: string}}, required: [location]}
  output_schema: {type: object, required: [temperature_c]}
  mock_template: '{"location":"{{.location}}","temperature_c":21.5}'
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: caps}
spec: {max_total_tool_calls: 1000000000}
`)
	const answer = `{"location":"Oslo","temperature_c":21.5}`
	plain := sdk.NewServer(&sdk.Implementation{Name: "floor", Version: "1"}, nil)
	plain.AddTool(&sdk.Tool{Name: "weather", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: answer}}, StructuredContent: json.RawMessage(answer)}, nil
	})
	for _, protocol := range []struct{ name, version string }{{"sessions", "2025-11-25"}, {"modern", "2026-07-28"}} {
		floor := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return plain }, &sdk.StreamableHTTPOptions{Stateless: protocol.name == "modern"}))
		b.Cleanup(floor.Close)
		for _, s := range []struct {
			name string
			at   *served
		}{{"floor", &served{url: floor.URL}}, {"serve", serveHTTP(b, "-f", dir)}} {
			b.Run(protocol.name+"/"+s.name, func(b *testing.B) {
				cs := s.at.client(b, protocol.version, nil)
				b.ReportAllocs()
				for b.Loop() {
					res, err := cs.CallTool(context.Background(), &sdk.CallToolParams{Name: "weather", Arguments: map[string]any{"location": "Oslo"}})
					if err != nil || res.IsError {
						b.Fatal(res, err)
					}
				}
			})
		}
	}
}

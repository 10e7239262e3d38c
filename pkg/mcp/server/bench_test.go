package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// BenchmarkCall compares a call over HTTP with its lower bound: a server of the SDK alone, with the same
// tool. Both exclude the work of the catalog.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{100, 1 << 10, 100 << 10} {
		text := strings.Repeat("x", size)
		plain := sdk.NewServer(&sdk.Implementation{Name: "floor", Version: "1"}, nil)
		plain.AddTool(&sdk.Tool{Name: "do", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
		})
		c := answer(v1.Result{Status: v1.StatusComplete, Parts: []v1.Part{{Type: v1.PartText, Text: text}}}, nil)
		for protocol, version := range versions {
			floor := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return plain }, &sdk.StreamableHTTPOptions{Stateless: protocol == "modern"}))
			for name, e := range map[string]*endpoint{"floor": {url: floor.URL}, "server": listen(b, server.New(c, server.Options{}), server.HTTPOptions{})} {
				if name == "floor" {
					floor.Config.Handler = http.StripPrefix("/mcp", floor.Config.Handler)
				}
				b.Run(fmt.Sprintf("%d/%s/%s", size, protocol, name), func(b *testing.B) {
					cs := e.client(b, version, nil)
					b.ReportAllocs()
					for b.Loop() {
						if _, err := cs.CallTool(context.Background(), &sdk.CallToolParams{Name: "do"}); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			b.Cleanup(floor.Close)
		}
	}
}

// BenchmarkList measures a list of a thousand tools from the catalog to the client.
func BenchmarkList(b *testing.B) {
	var all []server.Offer
	for i := range 1000 {
		all = append(all, offer("", fmt.Sprintf("tool-%d", i)))
	}
	c := catalogOf(all...)
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			server.New(c, server.Options{})
		}
	})
	cs := overStdio(b, server.New(c, server.Options{}), versions["modern"], nil)
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if res, err := cs.ListTools(context.Background(), nil); err != nil || len(res.Tools) != 1000 {
				b.Fatal(err)
			}
		}
	})
}

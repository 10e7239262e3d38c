package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing/fstest"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
)

// This example is a whole gateway within a program: a tool in Go, and a tool and a policy from manifests, served over
// HTTP. The caller is another gateway, for which the first is an MCP server.
func Example() {
	ctx := context.Background()
	type Place struct {
		City string `json:"city" description:"name of a city"`
	}
	type Weather struct {
		Celsius int `json:"celsius"`
	}
	weather := registry.Func("get-weather", "Weather now.", func(_ context.Context, at Place) (Weather, error) {
		return Weather{Celsius: len(at.City)}, nil
	})
	manifests := fstest.MapFS{ // or an embed.FS
		"time.yaml": {Data: []byte(`{apiVersion: toolctl.dev/v1, kind: Tool, metadata: {name: get-time},
			spec: {description: Time now., input_schema: {type: object}, mock_result: "12:00"}}`)},
		"once.yaml": {Data: []byte(`{apiVersion: toolctl.dev/v1, kind: ToolPolicy, metadata: {name: once},
			spec: {limits: [{tools: [get-weather], max_calls: 1, per: session}]}}`)},
	}
	g, err := gateway.Open(ctx, gateway.Options{Source: gateway.FS(manifests, manifest.Options{}), Objects: []v1.Object{weather}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close()
	endpoint := httptest.NewServer(g.Handler())
	defer endpoint.Close()

	server := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	server.Metadata.Name, server.Spec.URL = "g", endpoint.URL+"/mcp"
	client, err := gateway.Open(ctx, gateway.Options{Objects: []v1.Object{server}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	for _, call := range []v1.Call{
		{Tool: "g__get-time"},
		{Tool: "g__get-weather", Args: json.RawMessage(`{"city":"Oslo"}`)},
		{Tool: "g__get-weather", Args: json.RawMessage(`{"city":"Rome"}`)},
	} {
		res, err := client.Call(ctx, call)
		fmt.Println(call.Tool, res.Status, string(res.Content))
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// g__get-time complete "12:00"
	// g__get-weather complete {"celsius":4}
	// g__get-weather failed "tool \"get-weather\": refused by policy \"once\", rule limits[0]: 1 of 1 call of \"get-weather\" used this session (limit 1, used 1)"
	// tool "g__get-weather": tool "get-weather": refused by policy "once", rule limits[0]: 1 of 1 call of "get-weather" used this session (limit 1, used 1)
}

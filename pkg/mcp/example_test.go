package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/mcptest"
)

func ExampleUpstreams() {
	weather := mcptest.NewServer("weather") // stands in for a real one
	defer weather.Close()
	weather.AddTool(mcptest.Tool{Name: "get", Description: "Weather now."}, mcptest.JSON(`{"celsius":4}`))
	manifest := weather.Manifest()

	up := mcp.NewUpstreams([]*v1.MCPServer{manifest}, mcp.Options{Dial: weather.Dial})
	defer up.Close()
	for _, state := range up.Discover(context.Background()) {
		fmt.Println(state.Key, state.Ready, state.Tools[0].Tool.Spec.Description)
	}
	res, err := up.Call(context.Background(), manifest.Key(), "get", json.RawMessage(`{}`), false)
	fmt.Println(res.Status, string(res.Content), err)
	// Output:
	// MCPServer default/weather true Weather now.
	// complete {"celsius":4} <nil>
}

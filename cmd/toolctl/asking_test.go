package main

import (
	"context"
	"fmt"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// askingUpstream speaks MCP over stdio. Its tool "ask" reports progress, asks the user and the model of its client,
// and returns their answers and the ID of its process.
func askingUpstream() {
	s := sdk.NewServer(&sdk.Implementation{Name: "asking", Version: "1"}, &sdk.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
	s.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "asking"}); err != nil {
				return nil, err
			}
		}
		e, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Mode: "form", Message: "which city?", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}},
		}})
		if err != nil {
			return nil, err
		}
		m, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 10, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "weather?"}}}})
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf("city %v, weather %s, process %d", e.Content["city"], m.Content.(*sdk.TextContent).Text, os.Getpid())
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "process", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint("process ", os.Getpid())}}}, nil
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

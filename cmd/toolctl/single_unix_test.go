//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// onlyUpstream speaks MCP over stdio and counts calls in its memory. It writes its start to the file in its first
// argument, and locks that file while it runs. If another process still holds the lock, it writes "overlap".
func onlyUpstream() {
	if err := serveOnly(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveOnly(path string) error {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	note := func(what string) { fmt.Fprintf(log, "%s %d\n", what, os.Getpid()) }
	if err := syscall.Flock(int(log.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		note("overlap")
		return err
	}
	note("start")
	s := sdk.NewServer(&sdk.Implementation{Name: "only", Version: "1"}, &sdk.ServerOptions{
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	text := func(format string, args ...any) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
	}
	tool := func(name string, f func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, f)
	}
	var count atomic.Int64
	tool("add", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text("call %d of process %d", count.Add(1), os.Getpid()), nil
	})
	tool("wait", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "waiting"}); err != nil {
				return nil, err
			}
		}
		note("waiting")
		for {
			if _, err := os.Stat(path + ".go"); !errors.Is(err, os.ErrNotExist) {
				return text("waited in process %d", os.Getpid()), err
			}
			select {
			case <-ctx.Done():
				note("cancelled")
				return nil, ctx.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	tool("ask", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if a, ok := r.Params.InputResponses["where"].(*sdk.ElicitResult); ok {
			return text("city %v", a.Content["city"]), nil
		}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"where": &sdk.ElicitParams{Mode: "form", Message: "which city?", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}},
		}}}}, nil
	})
	tool("die", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { os.Exit(3); return nil, nil })
	tool("grow", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		tool("grown", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("grown"), nil })
		return text("ok"), s.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: "note://1"})
	})
	s.AddPrompt(&sdk.Prompt{Name: "hello"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "hello of one"}}}}, nil
	})
	s.AddResource(&sdk.Resource{URI: "note://1", Name: "note"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "note://1", Text: "a note"}}}, nil
	})
	return s.Run(context.Background(), &sdk.StdioTransport{})
}

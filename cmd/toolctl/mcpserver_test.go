package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// serverFile describes the server that the command mcpserver of test scripts runs.
type serverFile struct {
	Name, Version, Instructions string
	// Stderr is written at the start. If Fail is set, the program then ends.
	Stderr string
	Fail   bool
	// Tools return their arguments, or Result.
	Tools []struct {
		sdk.Tool
		Result *sdk.CallToolResult `json:"result"`
	}
	Prompts   []*sdk.Prompt
	Resources []struct {
		sdk.Resource
		Text string `json:"text"`
		Blob []byte `json:"blob"`
	}
	Templates []*sdk.ResourceTemplate
}

// mcpServer speaks MCP over stdio according to the file in its first argument. A second argument is a file; the server
// waits until it exists.
func mcpServer() {
	if err := serveMCP(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveMCP(args []string) error {
	if len(args) == 0 {
		return errors.New("mcpserver: which file?")
	}
	if len(args) > 1 {
		if _, err := os.Stat(args[1]); err != nil {
			return err
		}
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var f serverFile
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if f.Stderr != "" {
		fmt.Fprintln(os.Stderr, f.Stderr)
	}
	if f.Fail {
		os.Exit(3)
	}
	s := sdk.NewServer(&sdk.Implementation{Name: f.Name, Version: f.Version}, &sdk.ServerOptions{Instructions: f.Instructions})
	for _, t := range f.Tools {
		if t.InputSchema == nil {
			t.InputSchema = map[string]any{"type": "object"}
		}
		s.AddTool(&t.Tool, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if t.Result != nil {
				return t.Result, nil
			}
			return &sdk.CallToolResult{
				Content:           []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}},
				StructuredContent: r.Params.Arguments,
			}, nil
		})
	}
	for _, p := range f.Prompts {
		s.AddPrompt(p, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			text := fmt.Sprintf("%s with %v", r.Params.Name, r.Params.Arguments)
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
				{Role: "user", Content: &sdk.TextContent{Text: text}},
				{Role: "assistant", Content: &sdk.ImageContent{Data: []byte("png"), MIMEType: "image/png"}},
			}}, nil
		})
	}
	for _, res := range f.Resources {
		s.AddResource(&res.Resource, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: res.URI, MIMEType: res.MIMEType, Text: res.Text, Blob: res.Blob}}}, nil
		})
	}
	for _, t := range f.Templates {
		s.AddResourceTemplate(t, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "made for " + strings.TrimPrefix(r.Params.URI, "note:")}}}, nil
		})
	}
	return s.Run(context.Background(), &sdk.StdioTransport{})
}

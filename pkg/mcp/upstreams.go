package mcp

import (
	"context"
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Upstreams are the sessions to MCP servers. All methods may be called by many
// goroutines at once.
type Upstreams struct{ opts Options }

// NewUpstreams returns the sessions to servers, none of which is started yet.
func NewUpstreams(servers []*v1.MCPServer, o Options) *Upstreams { return &Upstreams{o} }

// Replace makes servers the set. Sessions to servers whose manifest did not change
// go on; the others end once the calls that use them have ended.
func (u *Upstreams) Replace(servers []*v1.MCPServer) {}

// Servers returns the keys of the set, sorted.
func (u *Upstreams) Servers() []v1.Key { return nil }

// State returns what is known of a server without asking it.
func (u *Upstreams) State(server v1.Key) (ServerState, bool) { return ServerState{}, false }

// Discover asks the servers that keys name, or all when there are none, at once,
// and returns their states in the order of the keys, or sorted.
func (u *Upstreams) Discover(ctx context.Context, keys ...v1.Key) []ServerState { return nil }

// Call calls a tool by its name on the server.
func (u *Upstreams) Call(ctx context.Context, server v1.Key, tool string, args json.RawMessage, retry bool) (v1.Result, error) {
	return v1.Result{}, nil
}

// ReadResource reads a resource: one part of type "resource" for each of its contents.
func (u *Upstreams) ReadResource(ctx context.Context, server v1.Key, uri string) ([]v1.Part, error) {
	return nil, nil
}

// GetPrompt fills in a prompt.
func (u *Upstreams) GetPrompt(ctx context.Context, server v1.Key, name string, args map[string]string) (PromptResult, error) {
	return PromptResult{}, nil
}

// Complete asks for the values that an argument may take.
func (u *Upstreams) Complete(ctx context.Context, server v1.Key, r CompletionRequest) (Completion, error) {
	return Completion{}, nil
}

// Close ends every session and every child process, and waits for them.
func (u *Upstreams) Close() error { return nil }

package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/mcp"
)

// Upstreams returns the sessions to the MCP servers.
func (g *Gateway) Upstreams() *mcp.Upstreams { return g.servers.Upstreams }

// Discover queries the given MCP servers, or all if there are none, and returns when each has answered or timed out.
// Their tools can then be listed and called.
func (g *Gateway) Discover(ctx context.Context, servers ...v1.Key) []mcp.ServerState {
	return g.servers.discover(ctx, servers...)
}

// Servers returns the MCP servers of a namespace, sorted. An empty namespace means all.
func (g *Gateway) Servers(namespace string) []v1.Key { return g.servers.in(namespace) }

// Call executes a call. It queries MCP servers if that is needed to find the tool. The errors are those of api/v1.
func (g *Gateway) Call(ctx context.Context, call v1.Call) (v1.Result, error) {
	call, err := g.Prepare(ctx, call)
	if err != nil {
		return v1.Result{}, err
	}
	return g.reg.Execute(ctx, call)
}

// Prepare queries the MCP servers that may offer the tool of a call: no server for a known tool, the named server for
// server__tool, and all servers of the namespace for an unknown bare name. It returns the call with the rest of its
// Timeout.
func (g *Gateway) Prepare(ctx context.Context, call v1.Call) (v1.Call, error) {
	if call.Timeout <= 0 {
		g.find(ctx, call.Namespace, call.Tool)
		return call, nil
	}
	end := time.Now().Add(call.Timeout)
	within, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	g.find(within, call.Namespace, call.Tool)
	left := time.Until(end)
	if left <= 0 && ctx.Err() == nil {
		return call, &v1.ExecutionError{Tool: call.Tool, Phase: v1.PhaseTimeout, Message: fmt.Sprintf("timed out after %s, before its MCP server listed its tools", clip.Duration(call.Timeout))}
	}
	call.Timeout = left
	return call, ctx.Err()
}

func (g *Gateway) find(ctx context.Context, namespace, name string) {
	u := g.servers
	it, err := g.reg.Lookup(namespace, name)
	var missing *v1.NotFoundError
	switch {
	case err == nil:
		if k, ok := it.Tool().Server(); ok {
			if s := u.set.Load().servers[k]; s != nil && s.held {
				u.discover(ctx, k)
			}
		}
		return
	case errors.As(err, &missing) && missing.Ambiguous:
		return
	}
	g.mayHave(ctx, namespace, name)
}

// mayHave queries the servers whose name is a prefix of the given name, or else all servers of the namespace.
func (g *Gateway) mayHave(ctx context.Context, namespace, name string) []mcp.ServerState {
	keys := g.servers.named(namespace, name)
	if len(keys) == 0 {
		keys = g.servers.in(namespace)
	}
	if len(keys) == 0 {
		return nil
	}
	return g.servers.discover(ctx, keys...)
}

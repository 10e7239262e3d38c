package server

import (
	"context"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// onBehalf carries out a request on behalf of its client: what comes up while it is
// carried out finds the client in the context.
func (s *Server) onBehalf(ctx context.Context, a asked, do func(context.Context) (sdk.Result, error)) (sdk.Result, error) {
	p := s.peer(&a)
	if p == nil {
		return do(ctx)
	}
	with := func(ctx context.Context) (sdk.Result, error) {
		if p.Can.Form {
			ctx = v1.WithAsker(ctx, asker(p, a.principal()))
		}
		return do(mcp.WithPeer(ctx, p))
	}
	if p.Modern && p.Can != (mcp.Capabilities{}) {
		return s.hold(ctx, &a, p, with)
	}
	return with(ctx)
}

// isForClient reports whether an error of a server is for the client itself, which can
// do what is asked and call again: it lacks a capability, or a person must visit an
// address first (MCP specification, client/elicitation).
func isForClient(err error) bool {
	var upstream *v1.MCPError
	return errors.As(err, &upstream) && (upstream.Code == codeNeedsCapability || upstream.Code == codeNeedsURL)
}

const (
	codeNeedsCapability = -32021
	codeNeedsURL        = -32042
)

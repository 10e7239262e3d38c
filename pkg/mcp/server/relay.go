package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/pkg/mcp"
)

// onBehalf carries out a call, or what may take as long, on behalf of its client: what
// comes up while it is carried out finds the client in the context.
func (s *Server) onBehalf(ctx context.Context, a asked, do func(context.Context) (sdk.Result, error)) (sdk.Result, error) {
	p := s.peer(&a)
	with := func(ctx context.Context) (sdk.Result, error) {
		t, err := s.calls.Begin(a.principal())
		if err != nil {
			return nil, &jsonrpc.Error{Code: codeUnavailable, Message: err.Error()}
		}
		defer t.End()
		if p == nil {
			return do(ctx)
		}
		if ask := p.Ask; ask != nil {
			p.Ask = func(ctx context.Context, all map[string]mcp.InputRequest) (answers map[string]json.RawMessage, err error) {
				err = t.WhileWaiting(ctx, func() error { answers, err = ask(ctx, all); return err })
				return answers, err
			}
		}
		if p.Can.Form {
			ctx = callctx.WithAsker(ctx, s.asker(p, a.principal()))
		}
		return do(mcp.WithPeer(ctx, p))
	}
	if p != nil && p.Modern && p.Can != (mcp.Capabilities{}) {
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

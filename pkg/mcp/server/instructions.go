package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// defaultInstructions describe the server to a model by default.
const defaultInstructions = `This server is a gateway to tools of several origins. A tool named a__b is the tool b of the MCP server a.
Arguments are checked against the tool's input schema: when a call fails, its text lists each violation; fix the arguments and call again.
A call may be refused by a policy: its text names the rule and the limit. Do not repeat a refused call unchanged.`

// settleInstructions is how long the first response to a client waits for the instructions of the only
// server behind this server.
const settleInstructions = 2 * time.Second

// instructions returns the instructions for the client of a request: at /mcp those of the options; at a toolset its
// description, or those of the options; or those of the only server that is served if the catalog contains nothing
// else; or the default.
func (s *Server) instructions(ctx context.Context, r *request) string {
	text := s.described(ctx, r)
	if s.offers(r.toolset).view(r.principal).searching {
		text += "\n" + searchHint
	}
	return text
}

func (s *Server) described(ctx context.Context, r *request) string {
	texts := []string{s.opts.Instructions, s.offers(r.toolset).spec.Description}
	if r.toolset != "" {
		slices.Reverse(texts)
	}
	if text := cmp.Or(texts...); text != "" {
		return text
	}
	only := s.offers(r.toolset).only
	if only != nil && !only.Ready && only.LastSeen.IsZero() {
		ctx, cancel := context.WithTimeout(ctx, settleInstructions)
		defer cancel()
		s.catalog.Settle(ctx, "")
		only = s.offers(r.toolset).only
	}
	if only != nil && only.Instructions != "" {
		return only.Instructions
	}
	return defaultInstructions
}

// onlyServer returns the server that provides all content; nil if there is no such server.
func onlyServer(c Contents) *mcp.ServerState {
	if len(c.Servers) != 1 || len(c.Prompts)+len(c.Resources) > 0 || c.Servers[0].Key.Kind != v1.KindMCPServer {
		return nil
	}
	only := &c.Servers[0].ServerState
	for _, o := range c.Tools {
		if t := o.Tool; t.Spec.MCP == nil || t.Spec.MCP.Server != only.Key.Name || t.Namespace() != only.Key.Namespace {
			return nil
		}
	}
	return only
}

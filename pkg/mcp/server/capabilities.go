package server

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/pkg/mcp"
)

const metaCapabilities = metaPrefix + "clientCapabilities"

// declared reads what a client of 2026-07-28 says with each request that it can do (MCP
// specification, basic, per-request metadata); false when that is missing, or not plainly as
// the protocol has it. The SDK encodes and decodes it anew, with room for 32 KB.
func declared(meta map[string]any) (can mcp.Capabilities, ok bool) {
	all, ok := meta[metaCapabilities].(map[string]any)
	// member returns a member, which has to be an object.
	member := func(of map[string]any, name string) map[string]any {
		v, has := of[name]
		m, object := v.(map[string]any)
		ok = ok && (object || !has)
		return m
	}
	if e := member(all, "elicitation"); e != nil {
		can.URL = member(e, "url") != nil
		can.Form = member(e, "form") != nil || !can.URL // clients of 2025-06-18 name no mode
	}
	if m := member(all, "sampling"); m != nil {
		can.Sampling, can.SamplingTools, can.SamplingContext = true, member(m, "tools") != nil, member(m, "context") != nil
	}
	if r := member(all, "roots"); r != nil {
		can.Roots = true
		if changes, has := r["listChanged"]; has {
			var is bool
			can.RootsChanged, is = changes.(bool)
			ok = ok && is
		}
	}
	member(all, "experimental")
	member(all, "extensions")
	return can, ok
}

// capabilities is the same of what the SDK has read.
func capabilities(c *sdk.ClientCapabilities) (can mcp.Capabilities) {
	if c == nil {
		return can
	}
	if e := c.Elicitation; e != nil {
		can.URL = e.URL != nil
		can.Form = e.Form != nil || !can.URL // clients of 2025-06-18 name no mode
	}
	if m := c.Sampling; m != nil {
		can.Sampling, can.SamplingTools, can.SamplingContext = true, m.Tools != nil, m.Context != nil
	}
	if r := c.RootsV2; r != nil {
		can.Roots, can.RootsChanged = true, r.ListChanged
	}
	return can
}

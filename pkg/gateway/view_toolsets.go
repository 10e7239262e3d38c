package gateway

import (
	"iter"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/search"
)

// Toolset is a toolset as a principal sees it.
type Toolset struct {
	*v1.Toolset
	// Path is where HTTP clients reach it, such as /mcp/support; "" if it is not served.
	Path    string
	Tools   []registry.Item
	Prompts []Prompt // that are ready
	// Listed is the number of Tools that a list of all tools contains, and Tokens the size of that list, at
	// [v1.BytesPerToken]. Pinned is the number of those that clients always see.
	Listed, Pinned, Tokens int
}

// ListSize returns the number of bytes that tools take in a list for clients.
func (g *Gateway) ListSize(tools iter.Seq[registry.Item]) (bytes int) {
	definitions := newDefinitions(g.servers.Upstreams)
	for it := range tools {
		bytes += server.Offer{Tool: it.Tool(), Definition: definitions.of(it.Tool())}.Size()
	}
	return bytes
}

// Toolsets returns the Toolset manifests, sorted by name and including those that are not ready. It includes toolsets that
// the principal may not use.
func (v View) Toolsets() []registry.Item {
	page, err := v.g.reg.List(registry.Query{Kind: v1.KindToolset, Namespace: v.g.catalog.Namespace})
	if err != nil { // no selector
		return nil
	}
	return page.Items
}

// Toolset returns what the principal sees in a toolset.
func (v View) Toolset(t *v1.Toolset) Toolset {
	out, bytes := Toolset{Toolset: t}, 0
	for at, served := range v.g.Toolsets() {
		if served == t && (v.g.catalog.Toolset == "" || v.g.catalog.Toolset == at) {
			out.Path = "/mcp/" + at
		}
	}
	definitions := newDefinitions(v.g.servers.Upstreams)
	for _, it := range v.Tools() {
		if !search.Contains(t, v1.KindTool, it.Subject) {
			continue
		}
		out.Tools = append(out.Tools, it)
		if !it.Ready || !it.Tool().Offered() || v.Blocked(it) != nil {
			continue
		}
		out.Listed++
		bytes += server.Offer{Tool: it.Tool(), Definition: definitions.of(it.Tool())}.Size()
		if search.Pins(t, it.Subject) {
			out.Pinned++
		}
	}
	out.Tokens = bytes / v1.BytesPerToken
	for _, p := range v.Prompts() {
		owner, err := v.g.reg.Get(p.Owner.Kind, p.Owner.Namespace, p.Owner.Name)
		if p.Owner.Kind == v1.KindMCPServer {
			owner.Subject = owner.Subject.Offered(p.Name)
		}
		if err == nil && p.Ready && search.Contains(t, v1.KindPrompt, owner.Subject) {
			out.Prompts = append(out.Prompts, p)
		}
	}
	return out
}

package gateway

import (
	"maps"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/search"
)

// Toolsets returns the served Toolset manifests that are ready, by the part of their addresses after /mcp/. That part is
// the name of the toolset if it is in the namespace default, or if no other served toolset has the name. Otherwise it is
// NAMESPACE.NAME; a toolset in the namespace default that has this name takes precedence.
func (g *Gateway) Toolsets() map[string]*v1.Toolset {
	page, err := g.reg.List(registry.Query{Kind: v1.KindToolset, Namespace: g.opts.Subset.Namespace})
	if err != nil {
		return nil
	}
	count := map[string]int{}
	for _, it := range page.Items {
		count[it.Object.Head().Metadata.Name]++
	}
	all := map[string]*v1.Toolset{}
	claim := func(own bool) {
		for _, it := range page.Items {
			h := it.Object.Head()
			if own != (h.Namespace() == v1.DefaultNamespace) {
				continue
			}
			at := h.Metadata.Name
			if !own && count[at] > 1 {
				at = h.Namespace() + "." + at
			}
			if _, taken := all[at]; !taken {
				all[at] = it.Object.(*v1.Toolset)
				if !it.Ready { // nor is another toolset at its address
					all[at] = nil
				}
			}
		}
	}
	claim(true)
	claim(false)
	maps.DeleteFunc(all, func(_ string, t *v1.Toolset) bool { return t == nil })
	return all
}

// checkToolset returns an error if the only toolset that is to be served does not exist.
func (c *catalog) checkToolset() error {
	all := c.Toolsets()
	if c.Toolset == "" || all[c.Toolset] != nil {
		return nil
	}
	missing := &v1.NotFoundError{Kind: v1.KindToolset, Name: c.Toolset}
	if near := v1.Nearest(c.Toolset, slices.Sorted(maps.Keys(all))); near != "" {
		missing.Candidates = []string{near}
	}
	return missing
}

// alone returns the toolset that is served alone; nil if there is none. It is empty if it was removed.
func (c *catalog) alone() *v1.Toolset {
	if c.Toolset == "" {
		return nil
	}
	if t := c.Toolsets()[c.Toolset]; t != nil {
		return t
	}
	return &v1.Toolset{Spec: v1.ToolsetSpec{Include: []v1.ToolsetMatch{}}}
}

// parts returns what is in the served toolsets.
func (c *catalog) parts(all server.Contents, served []registry.Item) (parts []server.Toolset) {
	for at, t := range c.Toolsets() {
		if c.Toolset == "" || at == c.Toolset {
			parts = append(parts, c.part(at, t, all, served))
		}
	}
	if t := c.alone(); t != nil {
		parts = append(parts, c.part("", t, all, served))
	}
	return parts
}

// part returns what is in a toolset.
func (c *catalog) part(at string, t *v1.Toolset, all server.Contents, served []registry.Item) server.Toolset {
	part := server.Toolset{Name: at, Spec: t.Spec, Tools: map[string]bool{}, Servers: c.upstreamsIn(t, all.Servers)}
	owners := map[v1.Key]bool{}
	for i := range served {
		if it := &served[i]; search.Contains(t, v1.KindTool, it.Subject) {
			part.Tools[it.FullName] = search.Pins(t, it.Subject)
			owners[it.Tool().Key()] = true
		}
	}
	prompts := c.promptSet.Load()
	for _, p := range all.Prompts {
		o := policy.Subject{Namespace: p.Key.Namespace, Name: p.Key.Name}
		if own := prompts.prompt(p.Key); own != nil {
			o.Labels = own.Object().Metadata.Labels
		}
		if search.Contains(t, v1.KindPrompt, o) {
			part.Prompts = append(part.Prompts, p)
			owners[p.Key] = true
		}
	}
	for _, r := range all.Resources {
		if owners[r.Owner] {
			part.Resources = append(part.Resources, r)
		}
	}
	return part
}

// upstreamsIn returns the MCP servers with those prompts and resources that are in a toolset.
func (c *catalog) upstreamsIn(t *v1.Toolset, all []server.Upstream) (in []server.Upstream) {
	declared := c.servers.set.Load().servers
	for _, s := range all {
		o := policy.Subject{Namespace: s.Key.Namespace, Server: s.Key.Name}
		if d := declared[s.Key]; d != nil {
			o.ServerLabels = d.manifest.Metadata.Labels
		}
		whole := search.Contains(t, v1.KindMCPServer, o)
		if !whole {
			s.Resources, s.ResourceTemplates = nil, nil
		}
		s.Prompts = slices.DeleteFunc(slices.Clone(s.Prompts), func(p mcp.Prompt) bool {
			return !search.Contains(t, v1.KindPrompt, o.Offered(p.Name))
		})
		if whole || len(s.Prompts) > 0 {
			in = append(in, s)
		}
	}
	return in
}

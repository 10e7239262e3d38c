package gateway

import (
	"context"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
)

// retryServers is how often a server that is not ready is asked again.
const retryServers = 15 * time.Second

// askServers asks the MCP servers what they offer and goes on asking those that are not
// ready, until ctx ends.
func (g *Gateway) askServers(ctx context.Context) {
	g.logStates(g.servers.discover(ctx))
	g.catalog.warnSubset()
	g.reg.Check(ctx) // schemas that do not compile take their tools out of the list
	g.refresh()
	tick := time.NewTicker(retryServers)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, k := range g.servers.unready() { // one that is slow holds up no other
			g.tasks.run(func(ctx context.Context) { g.servers.ask(ctx, k) })
		}
	}
}

// warnSubset logs which of the names and labels of the subset choose nothing, which is likely a slip.
func (c *catalog) warnSubset() {
	c.warnPrompts()
	page, err := c.reg.List(registry.Query{Kind: v1.KindTool, Namespace: c.Namespace, Selector: c.Selector})
	if err == nil && c.Selector != "" && len(page.Items) == 0 {
		c.log.Warn("no tool has the labels that were chosen", "selector", c.Selector)
	}
	for _, p := range c.Tools {
		if !slices.ContainsFunc(page.Items, func(it registry.Item) bool { return v1.MatchTool(p, it.Tool().Metadata.Name) }) {
			c.log.Warn("no tool has the name that was chosen", "tools", p)
		}
	}
}

// logStates logs which servers are not ready, and what of their answers is left out
// or suspicious.
func (g *Gateway) logStates(states []mcp.ServerState) {
	for _, s := range states {
		if !s.Ready {
			g.log.Warn("mcp server is not ready", "server", s.Key.Name, "namespace", s.Key.Namespace, "reason", inspect.Show(s.Reason))
		}
		for _, text := range s.Warnings {
			g.log.Warn("mcp server", "server", s.Key.Name, "namespace", s.Key.Namespace, "warning", inspect.Show(text))
		}
		for _, t := range s.Tools {
			for _, f := range inspect.Tool(t.Tool) {
				g.log.Warn("suspicious text", "tool", t.Tool.Metadata.Name, "field", v1.FieldPath(f.Path), "warning", f.Message)
			}
		}
	}
}

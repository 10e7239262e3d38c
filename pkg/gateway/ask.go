package gateway

import (
	"context"
	"fmt"
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

// logStates logs which servers are not ready, and what of their answers is left out or suspicious: in one
// line, which is about the first, and names the others.
func (g *Gateway) logStates(states []mcp.ServerState) {
	var lines [][]any // attributes
	var messages, texts []string
	note := func(message, text string, attrs ...any) {
		messages, texts, lines = append(messages, message), append(texts, text), append(lines, attrs)
	}
	for _, s := range states { // what does not work comes first
		if !s.Ready {
			reason := inspect.Show(s.Reason)
			note("mcp server is not ready", fmt.Sprintf("%s is not ready: %s", s.Key.Name, reason), "server", s.Key.Name, "namespace", s.Key.Namespace, "reason", reason)
		}
	}
	for _, s := range states {
		for _, text := range s.Warnings {
			text = inspect.Show(text)
			note("mcp server", s.Key.Name+": "+text, "server", s.Key.Name, "namespace", s.Key.Namespace, "warning", text)
		}
		for _, t := range s.Tools {
			for _, f := range inspect.Tool(t.Tool) {
				name, field := t.Tool.Metadata.Name, v1.FieldPath(f.Path)
				note("suspicious text", fmt.Sprintf("%s: %s: %s", name, field, f.Message), "tool", name, "field", field, "warning", f.Message)
			}
		}
	}
	switch len(lines) {
	case 0:
	case 1:
		g.log.Warn(messages[0], lines[0]...)
	default:
		g.log.Warn(messages[0], append(lines[0], "others", someOf(texts[1:]))...)
	}
}

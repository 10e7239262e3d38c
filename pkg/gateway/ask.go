package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
)

// retryServers is the interval at which servers that are not ready are queried again.
const retryServers = 15 * time.Second

// askServers queries all MCP servers, and then repeats the query for those that are not ready, until ctx ends.
func (g *Gateway) askServers(ctx context.Context) {
	var found warnings
	found.states(g.servers.discover(ctx))
	found.prompts(g.catalog)
	found.subset(g.catalog)
	found.log(g.log)
	g.reg.Check(ctx) // tools whose schemas do not compile are not listed
	g.refresh()
	every(ctx, retryServers, func() {
		for _, k := range g.servers.unready() { // in parallel, so that a slow server does not delay others
			g.tasks.run(func(ctx context.Context) { g.servers.ask(ctx, k) })
		}
	})
}

// warnings are the warnings of a start or a reload. They are logged in one line: the first one in full, with the names
// of the others.
type warnings struct {
	message string
	attrs   []any
	others  []string
}

func (w *warnings) note(message, text string, attrs ...any) {
	if w.message == "" {
		w.message, w.attrs = message, attrs
		return
	}
	w.others = append(w.others, text)
}

func (w *warnings) log(to *slog.Logger) {
	if len(w.others) > 0 {
		w.attrs = append(w.attrs, "others", clip.Some(w.others))
	}
	if w.message != "" {
		to.Warn(w.message, w.attrs...)
	}
}

// states adds warnings for servers that are not ready, and for omitted or suspicious parts of their answers.
func (w *warnings) states(states []mcp.ServerState) {
	for _, s := range states { // failures come first
		if !s.Ready {
			reason := inspect.Show(s.Reason)
			w.note("mcp server is not ready", fmt.Sprintf("%s is not ready: %s", s.Key.Name, reason), "server", s.Key.Name, "namespace", s.Key.Namespace, "reason", reason)
		}
	}
	for _, s := range states {
		for _, text := range s.Warnings {
			text = inspect.Show(text)
			w.note("mcp server", s.Key.Name+": "+text, "server", s.Key.Name, "namespace", s.Key.Namespace, "warning", text)
		}
		for _, t := range s.Tools {
			for _, f := range inspect.Tool(t.Tool) {
				name, field := t.Tool.Metadata.Name, v1.FieldPath(f.Path)
				w.note("suspicious text", fmt.Sprintf("%s: %s: %s", name, field, f.Message), "tool", name, "field", field, "warning", f.Message)
			}
		}
	}
}

// subset adds warnings for names and labels of the subset that match nothing, which is probably a mistake.
func (w *warnings) subset(c *catalog) {
	page, err := c.reg.List(registry.Query{Kind: v1.KindTool, Namespace: c.Namespace, Selector: c.Selector})
	if err == nil && c.Selector != "" && len(page.Items) == 0 {
		const message = "no tool has the selected labels"
		w.note(message, message+": "+c.Selector, "selector", c.Selector)
	}
	chosen := func(what, message string, wanted []string, has func(string) bool) {
		for _, want := range wanted {
			if !has(want) {
				w.note(message, message+": "+want, what, want)
			}
		}
	}
	chosen("tools", "no tool has the selected name", c.Tools, func(p string) bool {
		return slices.ContainsFunc(page.Items, func(it registry.Item) bool { return v1.MatchTool(p, it.Tool().Metadata.Name) })
	})
	chosen("prompt", "no ready prompt has the selected name", c.Prompts, c.hasPrompt)
}

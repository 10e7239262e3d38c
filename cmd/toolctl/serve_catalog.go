package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/internal/wirename"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
)

var _ server.Catalog = (*catalog)(nil)

// catalog is a workspace as pkg/mcp/server asks for one.
type catalog struct {
	*app
	w         *workspace
	labels    string          // selector of the tools that are served
	names     []string        // patterns of their names; none for all
	prompts   []string        // patterns of the names of prompts, which are served with their tools; none for all
	settled   chan struct{}   // closed when every MCP server was asked once
	late      context.Context // ends when clients wait for it no longer
	promptSet atomic.Pointer[promptSet]
}

func newCatalog(a *app, w *workspace, labels string, names []string) *catalog {
	return &catalog{app: a, w: w, labels: labels, names: names, settled: make(chan struct{}), late: context.Background()}
}

func (c *catalog) Contents() server.Contents {
	all := server.Contents{Tools: c.tools(), Servers: c.servers(), Prompts: c.ownPrompts()}
	all.Resources = c.ownResources(all)
	return all
}

func (c *catalog) tools() []server.Offer {
	page, err := c.w.reg.List(registry.Query{Kind: v1.KindTool, Namespace: c.namespace, Selector: c.labels})
	if err != nil { // the selector was read before
		c.log.Error("list the tools", "error", err)
	}
	definitions := newDefinitions(c.w.mcp)
	named, own := c.toolsOfPrompts(), c.overlay()
	offers := make([]server.Offer, 0, len(page.Items))
	for _, it := range page.Items {
		name := it.Tool().Metadata.Name
		if len(c.names) == 0 && named == nil || named[it.FullName] || slices.ContainsFunc(c.names, func(p string) bool { return v1.MatchTool(p, name) }) {
			blocked, _ := it.Under(own, "")
			offer := server.Offer{Tool: it.Tool(), Name: it.FullName, Definition: definitions.of(it.Tool()), Hidden: !it.Ready || blocked != nil || !it.Tool().Offered()}
			if a := it.Audience(own); a != nil {
				offer.Audience = a
			}
			offers = append(offers, offer)
		}
	}
	return offers
}

// listTime is how long clients wait for what servers offer, from when they are first
// asked. Who is later is told of by a notification that the list changed.
const listTime = 5 * time.Second

func (c *catalog) Settle(ctx context.Context, tool string) {
	for {
		news := c.w.mcp.news()
		if tool != "" && !c.mayCome(tool) {
			return
		}
		select {
		case <-news:
		case <-c.settled:
			return
		case <-c.late.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// mayCome reports whether a tool that is not known may be of a server that was not asked yet.
func (c *catalog) mayCome(tool string) bool {
	for k, m := range c.w.mcp.set.Load().servers {
		if c.w.mcp.wasAsked(k) {
			continue
		}
		if m.Spec.ToolNames == "bare" {
			return true
		}
		for _, name := range []string{k.Name, k.Namespace + "__" + k.Name} {
			if strings.HasPrefix(tool, wirename.Clean(name)+"__") {
				return true
			}
		}
	}
	return false
}

func (c *catalog) Call(ctx context.Context, call v1.Call, progress func(server.Progress)) (v1.Result, error) {
	if progress != nil {
		ctx = mcp.WithProgress(ctx, func(p mcp.Progress) { progress(server.Progress(p)) })
	}
	res, err := c.w.reg.Execute(policy.WithOverlay(ctx, c.overlay()), call)
	return c.undecidable(res), err
}

// servers returns the MCP servers for their prompts and resources: with --prompt for the
// prompts of that name, and none when only some tools are served.
func (c *catalog) servers() []server.Upstream {
	if len(c.prompts) == 0 && (c.labels != "" || len(c.names) > 0) {
		return nil
	}
	var servers []server.Upstream
	for k, m := range c.w.mcp.set.Load().servers {
		state, ok := c.w.mcp.State(k)
		if ok && len(c.prompts) > 0 {
			state, ok = c.promptsOnly(state)
		}
		if ok && (c.namespace == "" || k.Namespace == c.namespace) {
			servers = append(servers, server.Upstream{ServerState: state, Bare: m.Spec.ToolNames == "bare"})
		}
	}
	return servers
}

func (c *catalog) GetPrompt(ctx context.Context, owner v1.Key, name string, args map[string]string) (mcp.PromptResult, error) {
	if owner.Kind == v1.KindPrompt {
		return c.renderPrompt(ctx, owner, args)
	}
	return c.w.mcp.GetPrompt(ctx, owner, name, args)
}

func (c *catalog) ReadResource(ctx context.Context, owner v1.Key, uri string) ([]v1.Part, error) {
	if owner.Kind != v1.KindMCPServer {
		return c.readOwn(owner, uri)
	}
	return c.w.mcp.ReadResource(ctx, owner, uri)
}

func (c *catalog) Complete(ctx context.Context, owner v1.Key, r mcp.CompletionRequest) (mcp.Completion, error) {
	if owner.Kind == v1.KindPrompt {
		return c.completePrompt(owner, r)
	}
	return c.w.mcp.Complete(ctx, owner, r)
}

// retryServers is how often a server that is not ready is asked again.
const retryServers = 15 * time.Second

// watchUpstreams asks the MCP servers what they offer and goes on asking those that
// are not ready. The function that it returns ends that and waits for it.
func (c *catalog) watchUpstreams(ctx context.Context, s *server.Server) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	late, notLate := context.WithTimeout(ctx, listTime)
	c.late = late
	c.w.mcp.onPublish(s.Refresh)
	c.w.mcp.onUpdate(s.ResourceUpdated)
	c.w.mcp.onListChanged(s.ListChanged)
	var done sync.WaitGroup
	done.Go(func() {
		states := c.w.mcp.discover(ctx)
		c.logStates(states)
		s.Refresh()
		close(c.settled)
		c.warnSubset()
		c.w.reg.Check(ctx) // schemas that do not compile take their tools out of the list
		s.Refresh()
		tick := time.NewTicker(retryServers)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if keys := c.w.mcp.notReady(); len(keys) > 0 {
				c.w.mcp.discover(ctx, keys...)
				s.Refresh()
			}
		}
	})
	return func() {
		c.w.mcp.onPublish(func() {})
		c.w.mcp.onUpdate(func(string) {})
		c.w.mcp.onListChanged(func(string) {})
		cancel()
		notLate()
		done.Wait()
	}
}

// warnSubset logs which of --tools and --select choose nothing, which is likely a slip.
func (c *catalog) warnSubset() {
	c.warnPrompts()
	page, err := c.w.reg.List(registry.Query{Kind: v1.KindTool, Namespace: c.namespace, Selector: c.labels})
	if err == nil && c.labels != "" && len(page.Items) == 0 {
		c.log.Warn("no tool has the labels of -l", "selector", c.labels)
	}
	for _, p := range c.names {
		if !slices.ContainsFunc(page.Items, func(it registry.Item) bool { return v1.MatchTool(p, it.Tool().Metadata.Name) }) {
			c.log.Warn("no tool has a name of --tools", "tools", p)
		}
	}
}

// logStates logs which servers are not ready, and what of their answers is left out
// or suspicious.
func (c *catalog) logStates(states []mcp.ServerState) {
	for _, s := range states {
		if !s.Ready {
			c.log.Warn("mcp server is not ready", "server", s.Key.Name, "namespace", s.Key.Namespace, "reason", inspect.Show(s.Reason))
		}
		for _, text := range s.Warnings {
			c.log.Warn("mcp server", "server", s.Key.Name, "namespace", s.Key.Namespace, "warning", inspect.Show(text))
		}
		for _, t := range s.Tools {
			for _, f := range inspect.Tool(t.Tool) {
				c.log.Warn("suspicious text", "tool", t.Tool.Metadata.Name, "field", v1.FieldPath(f.Path), "warning", f.Message)
			}
		}
	}
}

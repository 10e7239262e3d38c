package gateway

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/wirename"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
)

var _ server.Catalog = (*catalog)(nil)

// catalog implements the catalog interface of pkg/mcp/server for a gateway.
type catalog struct {
	*Gateway
	Subset
	promptSet atomic.Pointer[promptSet]
}

func newCatalog(g *Gateway) *catalog {
	return &catalog{Gateway: g, Subset: g.opts.Subset}
}

func (c *catalog) Contents() server.Contents {
	served := c.served()
	all := server.Contents{Tools: c.tools(served), Servers: c.upstreams(), Prompts: c.ownPrompts()}
	all.Resources = c.ownResources(all)
	all.Toolsets = c.parts(all, served)
	return all
}

func (c *catalog) tools(served []registry.Item) []server.Offer {
	definitions := newDefinitions(c.servers.Upstreams)
	own := c.overlay()
	offers := make([]server.Offer, 0, len(served))
	for _, it := range served {
		blocked, _ := it.Under(own, "")
		offer := server.Offer{Tool: it.Tool(), Name: it.FullName, Definition: definitions.of(it.Tool()), Hidden: !it.Ready || blocked != nil || !it.Tool().Offered()}
		if a := it.Audience(own); a != nil {
			offer.Audience = a
		}
		offers = append(offers, offer)
	}
	return offers
}

// served returns the tools of the subset, sorted by name. It updates the prompts if they select the tools.
func (c *catalog) served() []registry.Item {
	page, err := c.reg.List(registry.Query{Kind: v1.KindTool, Namespace: c.Namespace, Selector: c.Selector})
	if err != nil { // the selector was parsed before
		c.log.Error("list the tools", "error", err)
	}
	named := c.toolsOfPrompts()
	return slices.DeleteFunc(page.Items, func(it registry.Item) bool {
		all := len(c.Tools) == 0 && named == nil
		return !all && !named[it.FullName] && !slices.ContainsFunc(c.Tools, func(p string) bool { return v1.MatchTool(p, it.Tool().Metadata.Name) })
	})
}

func (c *catalog) Settle(ctx context.Context, tool string) {
	for {
		left, news := c.servers.asked.waits(func(k v1.Key) bool { return c.mayHave(k, tool) })
		if left <= 0 {
			return
		}
		late := time.NewTimer(left)
		select {
		case <-news:
		case <-late.C:
		case <-ctx.Done():
		}
		late.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// mayHave reports whether a tool may belong to a server. It returns true for an empty tool name, and for every tool of
// a server with bare tool names.
func (c *catalog) mayHave(k v1.Key, tool string) bool {
	if s := c.servers.set.Load().servers[k]; tool == "" || s != nil && s.manifest.Spec.ToolNames == "bare" {
		return true
	}
	return strings.HasPrefix(tool, wirename.Clean(k.Name)+"__") || strings.HasPrefix(tool, wirename.Clean(k.Namespace+"__"+k.Name)+"__")
}

func (c *catalog) Call(ctx context.Context, call v1.Call, progress func(mcp.Progress)) (v1.Result, error) {
	if progress != nil {
		ctx = mcp.WithProgress(ctx, progress)
	}
	res, err := c.reg.Execute(policy.WithOverlay(ctx, c.overlay()), call)
	if err == nil && c.awaitDecision(ctx, &call, res) {
		res, err = c.reg.Execute(policy.WithOverlay(ctx, c.overlay()), call)
	}
	return c.undecidable(res), err
}

// awaitDecision waits for a decision on a pending call and adds its approval ID to the call. It returns false if there
// is no decision in time or the server stops.
func (c *catalog) awaitDecision(ctx context.Context, call *v1.Call, res v1.Result) bool {
	if c.opts.ApprovalWait <= 0 || res.Status != v1.StatusPending || res.Pending == nil || res.Pending.ID == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.ApprovalWait)
	defer cancel()
	defer context.AfterFunc(c.stopping, cancel)()
	p, err := c.approvals.AwaitApproval(ctx, res.Pending.ID)
	call.Approval = p.ID
	return err == nil && (p.State == v1.ApprovalApproved || p.State == v1.ApprovalDenied)
}

// upstreams returns the MCP servers for their prompts and resources: with --prompt only for the prompts with that name,
// and no server if only some tools are served.
func (c *catalog) upstreams() []server.Upstream {
	if len(c.Prompts) == 0 && (c.Selector != "" || len(c.Tools) > 0) {
		return nil
	}
	var servers []server.Upstream
	for k, m := range c.servers.set.Load().servers {
		state, ok := c.servers.State(k)
		if ok && len(c.Prompts) > 0 {
			state, ok = c.promptsOnly(state)
		}
		if ok && (c.Namespace == "" || k.Namespace == c.Namespace) {
			servers = append(servers, server.Upstream{ServerState: state, Bare: m.manifest.Spec.ToolNames == "bare"})
		}
	}
	return servers
}

func (c *catalog) GetPrompt(ctx context.Context, owner v1.Key, name string, args map[string]string) (mcp.PromptResult, error) {
	if owner.Kind == v1.KindPrompt {
		return c.renderPrompt(ctx, owner, args)
	}
	return c.servers.GetPrompt(ctx, owner, name, args)
}

func (c *catalog) ReadResource(ctx context.Context, owner v1.Key, uri string) ([]v1.Part, error) {
	if owner.Kind != v1.KindMCPServer {
		return c.readOwn(owner, uri)
	}
	return c.servers.ReadResource(ctx, owner, uri)
}

func (c *catalog) Complete(ctx context.Context, owner v1.Key, r mcp.CompletionRequest) (mcp.Completion, error) {
	if owner.Kind == v1.KindPrompt {
		return c.completePrompt(owner, r)
	}
	return c.servers.Complete(ctx, owner, r)
}

func (c *catalog) Subscribe(ctx context.Context, server v1.Key, uri string) error {
	return c.servers.Subscribe(ctx, server, uri)
}

func (c *catalog) Unsubscribe(ctx context.Context, server v1.Key, uri string) error {
	return c.servers.Unsubscribe(ctx, server, uri)
}

func (c *catalog) RootsChanged(peer string) { c.servers.RootsChanged(peer) }

func (c *catalog) SetLogLevel(peer, level string) { c.servers.SetLogLevel(peer, level) }

func (c *catalog) EndPeer(peer string) { c.servers.EndPeer(peer) }

// undecidable adds to a pending call that it cannot be approved, if no store makes it visible to another terminal.
func (c *catalog) undecidable(res v1.Result) v1.Result {
	if res.Status != v1.StatusPending || res.Pending == nil {
		return res
	}
	if at := c.decided.Load(); at != nil {
		p := *res.Pending
		p.CallbackURL = *at + p.ID
		res.Pending = &p
	} else if c.opts.Store == nil {
		p := *res.Pending
		p.ID, p.ExpiresAt = "", nil
		p.Message += ", which nobody can give: the client cannot ask for it, and the server was started without a store"
		res.Pending = &p
	}
	return res
}

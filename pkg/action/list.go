package action

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
)

// List lists objects, and what MCP servers offer.
type List struct {
	*Config
	// Requests are the objects, whose names may end in *. Default: all.
	Requests []Request
	Selector string
	// Limit is how many of each request to list, after Offset; of all together with SortBy. Default: all.
	Limit, Offset int
	// SortBy is the field to sort objects by, such as .metadata.name. Default: kind, namespace and name.
	SortBy string
	// Offline asks no MCP server what it offers.
	Offline bool
	// States asks the servers that are listed how they are; Statuses says how each object stands.
	States, Statuses bool
	// Asked is told of the answers of servers that were asked for what they offer, and Found of a tool of
	// one that was asked for by name.
	Asked func([]mcp.ServerState)
	Found func(*v1.Tool)
}

// Listed is the result of a [List].
type Listed struct {
	Items []registry.Item
	// Total is how many there are on all pages.
	Total int
	// Servers are the servers that were asked.
	Servers []mcp.ServerState
	// Statuses are nil unless they were asked for.
	Statuses map[v1.Key]v1.Status
}

// Run lists the objects of a new workspace.
func (l *List) Run(ctx context.Context) (_ *Listed, err error) {
	w, err := l.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return l.In(ctx, w)
}

// In lists the objects of a workspace, request by request. There is a result beside an error when only the
// statuses could not be read.
func (l *List) In(ctx context.Context, w *Workspace) (*Listed, error) {
	requests := l.Requests
	if len(requests) == 0 {
		requests = []Request{{}}
	}
	sorted, err := parseSortBy(l.SortBy)
	if err != nil {
		return nil, err
	}
	r, page := &Listed{}, *l
	if sorted != nil {
		page.Limit, page.Offset = 0, 0
	}
	for _, q := range requests {
		states := l.ask(ctx, w, q)
		items, n, err := page.query(w.Registry, q, states)
		if err != nil {
			return nil, err
		}
		r.Items, r.Total, r.Servers = append(r.Items, items...), r.Total+n, append(r.Servers, states...)
	}
	if sorted != nil {
		if r.Items, err = sorted(r.Items); err != nil {
			return nil, err
		}
		r.Items = Page(r.Items, l.Limit, l.Offset)
	}
	if !l.Statuses {
		return r, nil
	}
	r.Statuses, err = w.Status(ctx, r.Items, r.Servers)
	return r, err
}

// ask asks the servers that a request is about. A list of everything shows what is declared and
// starts nothing.
func (l *List) ask(ctx context.Context, w *Workspace, q Request) (states []mcp.ServerState) {
	pattern := func(name string) bool { return strings.HasSuffix(name, "*") }
	switch {
	case l.Offline:
		return nil
	case q.Kind == v1.KindTool && len(q.Names) > 0 && !slices.ContainsFunc(q.Names, pattern):
		for _, name := range q.Names {
			_, _ = w.Find(ctx, v1.Call{Tool: name, Namespace: l.Namespace}, l.Found) // what does not exist, the query says
		}
		return nil
	case q.Kind == v1.KindTool, q.Kind == v1.KindPrompt && len(q.Names) == 0:
		if states = w.Discover(ctx, w.Servers(l.Namespace)...); l.Asked != nil {
			l.Asked(states)
		}
	case q.Kind == v1.KindMCPServer && (l.States || l.Statuses):
		keys := w.Servers(l.Namespace)
		if len(q.Names) > 0 {
			keys = slices.DeleteFunc(keys, func(k v1.Key) bool {
				return !slices.ContainsFunc(q.Names, func(n string) bool { return v1.MatchPattern(n, k.Name) || n == k.Namespace+"/"+k.Name })
			})
		}
		if len(keys) > 0 {
			states = w.Discover(ctx, keys...)
		}
	}
	return states
}

// query returns the items of a request, and how many there are on all pages.
func (l *List) query(reg *registry.Registry, r Request, states []mcp.ServerState) ([]registry.Item, int, error) {
	q := registry.Query{Kind: r.Kind, Namespace: l.Namespace, Selector: l.Selector, Limit: l.Limit, Offset: l.Offset}
	if len(r.Names) == 0 {
		if r.Kind == v1.KindPrompt {
			return l.prompts(reg, q, states)
		}
		p, err := reg.List(q)
		return p.Items, p.Total, usage(err)
	}
	var items []registry.Item
	for _, name := range r.Names {
		if strings.HasSuffix(name, "*") {
			q.Name = name
			p, err := reg.List(q)
			if err != nil {
				return nil, 0, usage(err)
			}
			items = append(items, p.Items...)
			continue
		}
		it, err := reg.Get(r.Kind, l.Namespace, name)
		if err != nil {
			return nil, 0, err
		}
		items = append(items, it)
	}
	return items, len(items), nil
}

func usage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err}
}

// prompts lists the declared prompts and those of servers, which have no labels.
func (l *List) prompts(reg *registry.Registry, q registry.Query, states []mcp.ServerState) ([]registry.Item, int, error) {
	q.Limit, q.Offset = 0, 0
	p, err := reg.List(q)
	if err != nil {
		return nil, 0, usage(err)
	}
	items := p.Items
	sel, err := registry.ParseSelector(q.Selector)
	if err != nil {
		return nil, 0, usage(err)
	}
	for _, s := range states {
		for _, prompt := range s.Prompts {
			it := registry.Item{Object: promptOf(s.Key, prompt), Ready: s.Ready, Server: s.Key}
			if !s.Ready {
				it.Reasons = []v1.Violation{{Message: s.Reason}}
			}
			if sel.Matches(nil) {
				items = append(items, it)
			}
		}
	}
	slices.SortStableFunc(items, func(a, b registry.Item) int {
		ha, hb := a.Object.Head(), b.Object.Head()
		return cmp.Or(strings.Compare(ha.Namespace(), hb.Namespace()), strings.Compare(ha.Metadata.Name, hb.Metadata.Name))
	})
	return Page(items, l.Limit, l.Offset), len(items), nil
}

// Page returns limit items after offset; all of them for 0.
func Page[T any](items []T, limit, offset int) []T {
	items = items[min(offset, len(items)):]
	if limit > 0 {
		items = items[:min(limit, len(items))]
	}
	return items
}

// promptOf shows a server's prompt in the form of a manifest.
func promptOf(server v1.Key, p mcp.Prompt) *v1.Prompt {
	o := v1.NewObject(v1.KindPrompt).(*v1.Prompt)
	o.Metadata = v1.Metadata{Name: server.Name + "__" + p.Name, Namespace: server.Namespace}
	o.Spec.Title, o.Spec.Description = p.Title, p.Description
	for _, a := range p.Arguments {
		o.Spec.Arguments = append(o.Spec.Arguments, v1.PromptArgument{Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required})
	}
	return o
}

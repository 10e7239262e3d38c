package action

import (
	"cmp"
	"context"
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
	// Limit is the maximum number of objects of each request, or with SortBy of all requests, after Offset.
	// Default: all.
	Limit, Offset int
	// SortBy is the field to sort objects by, such as .metadata.name. Default: kind, namespace and name.
	SortBy string
	// Offline queries no MCP server.
	Offline bool
	// Ready checks the objects of files, so that each says whether it can be used. A store checks its
	// objects when they are applied.
	Ready bool
	// States queries the listed servers for their state, Statuses adds the status of each object.
	States, Statuses bool
}

// Listed is the result of a [List].
type Listed struct {
	Items []ListedItem
	// Total is the number of objects on all pages.
	Total int
}

// ListedItem is an object with its state.
type ListedItem struct {
	registry.Item
	// Status is nil unless Statuses is set, and for tools and prompts of servers.
	Status *v1.Status
	// State is the answer of an MCP server; nil if the server was not queried.
	State *mcp.ServerState
	// Event is what happened to the object: [EventAdded], [EventModified] or [EventDeleted]. Only a watch sets it.
	Event string
}

// Run lists the objects.
func (l *List) Run(ctx context.Context) (r *Listed, err error) {
	err = l.within(ctx, func(w *Workspace) (err error) {
		r, err = l.in(ctx, w)
		return err
	})
	return r, err
}

// in lists the objects of a workspace, request by request. If only the statuses cannot be read, it returns both a
// result and an error.
func (l *List) in(ctx context.Context, w *Workspace) (*Listed, error) {
	if l.Ready && w.OfFiles {
		w.Registry.Check(ctx)
	}
	requests := l.Requests
	if len(requests) == 0 {
		requests = []Request{{}}
	}
	sorted, err := parseSortBy(l.SortBy)
	if err != nil {
		return nil, err
	}
	var (
		items    []registry.Item
		states   []mcp.ServerState
		r        = &Listed{}
		page     = *l
		statuses map[v1.Key]v1.Status
	)
	if sorted != nil {
		page.Limit, page.Offset = 0, 0
	}
	for _, q := range requests {
		answers := l.ask(ctx, w, q)
		found, n, err := page.query(w.Registry, q, answers)
		if err != nil {
			return nil, err
		}
		items, states, r.Total = append(items, found...), append(states, answers...), r.Total+n
	}
	if sorted != nil {
		if items, err = sorted(items); err != nil {
			return nil, err
		}
		items = pageOf(items, l.Limit, l.Offset)
	}
	if l.Statuses {
		statuses, err = w.Status(ctx, items, states)
	}
	for _, it := range items {
		one := ListedItem{Item: it, State: stateOf(states, it.Object.Head().Key())}
		if s, ok := statuses[it.Object.Head().Key()]; ok && it.Server == (v1.Key{}) {
			one.Status = &s
		}
		r.Items = append(r.Items, one)
	}
	return r, err
}

// ask queries the servers that a request is about. A list of everything shows only declared objects and starts no
// server.
func (l *List) ask(ctx context.Context, w *Workspace, q Request) (states []mcp.ServerState) {
	pattern := func(name string) bool { return strings.HasSuffix(name, "*") }
	switch {
	case l.Offline:
		return nil
	case q.Kind == v1.KindTool && len(q.Names) > 0 && !slices.ContainsFunc(q.Names, pattern):
		for _, name := range q.Names {
			_, _ = w.Find(ctx, v1.Call{Tool: name, Namespace: l.Namespace}) // the query reports a missing tool
		}
		return nil
	case q.Kind == v1.KindTool, q.Kind == v1.KindPrompt && len(q.Names) == 0:
		return w.ask(ctx)
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

// query returns the items of a request, and the number of items on all pages.
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

// prompts lists the declared prompts and the prompts of servers, which have no labels.
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
	return pageOf(items, l.Limit, l.Offset), len(items), nil
}

// pageOf returns limit items after offset; a limit of 0 means all items.
func pageOf[T any](items []T, limit, offset int) []T {
	items = items[min(offset, len(items)):]
	if limit > 0 {
		items = items[:min(limit, len(items))]
	}
	return items
}

// promptOf converts a prompt of a server into a manifest.
func promptOf(server v1.Key, p mcp.Prompt) *v1.Prompt {
	o := v1.NewObject(v1.KindPrompt).(*v1.Prompt)
	o.Metadata = v1.Metadata{Name: server.Name + "__" + p.Name, Namespace: server.Namespace}
	o.Spec.Title, o.Spec.Description = p.Title, p.Description
	for _, a := range p.Arguments {
		o.Spec.Arguments = append(o.Spec.Arguments, v1.PromptArgument{Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required})
	}
	return o
}

package action

import (
	"context"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/search"
	"toolctl.dev/toolctl/pkg/store"
)

// Describe returns everything known about objects: their state, and the rules that apply to them.
type Describe struct {
	*Config
	// Requests are the objects. A request without names selects all objects of its kind with the labels of
	// Selector.
	Requests []Request
	Selector string
	// Offline queries no MCP server.
	Offline bool
}

// Described is everything known about one object.
type Described struct {
	registry.Item
	// Shown is the object with possible secrets masked.
	Shown v1.Object
	// Record is the record in the store; nil for objects of files and servers.
	Record *store.Record
	// Override replaces the description of a tool; nil without one.
	Override *store.Override
	// Policies are the policies that govern a tool that is ready.
	Policies []string
	// Prompt is set for a prompt that is ready, and Tools are the tools that it names.
	Prompt *prompt.Prompt
	// Tools and Prompts are those of a prompt or a toolset.
	Tools, Prompts []string
	// Status is nil for objects of files and servers.
	Status *v1.Status
	// State is the answer of an MCP server if it was queried.
	State *mcp.ServerState
}

// Run describes the objects. If there is an error, it returns the objects before it.
func (d *Describe) Run(ctx context.Context) (all []Described, err error) {
	has, err := Labeled(d.Selector)
	if err != nil {
		return nil, err
	}
	err = d.within(ctx, func(w *Workspace) error {
		w.Registry.Check(ctx)
		for _, r := range d.Requests {
			if len(r.Names) == 0 {
				page, err := w.Registry.List(registry.Query{Kind: r.Kind, Namespace: d.Namespace})
				if err != nil {
					return err
				}
				for _, it := range page.Items {
					if h := it.Object.Head(); has(it.Object) {
						r.Names = append(r.Names, h.Namespace()+"/"+h.Metadata.Name)
					}
				}
			}
			for _, name := range r.Names {
				one, err := d.describe(ctx, w, r.Kind, name)
				if err != nil {
					return err
				}
				all = append(all, *one)
			}
		}
		return nil
	})
	return all, err
}

// describe describes the object with a name; it queries a server unless Offline is set.
func (d *Describe) describe(ctx context.Context, w *Workspace, kind, name string) (_ *Described, err error) {
	if kind == v1.KindTool && !d.Offline {
		_, _ = w.Find(ctx, v1.Call{Tool: name, Namespace: d.Namespace}) // Get reports a missing tool
	}
	r := &Described{}
	if r.Item, err = w.Registry.Get(kind, d.Namespace, name); err != nil {
		return nil, err
	}
	var states []mcp.ServerState
	if kind == v1.KindMCPServer && !d.Offline && len(r.Reasons) == 0 {
		states = w.Discover(ctx, r.Object.Head().Key())
		r.State = &states[0]
		if r.Item, err = w.Registry.Get(kind, d.Namespace, name); err != nil {
			return nil, err
		}
	}
	if t, ok := r.Object.(*v1.Toolset); ok {
		if !d.Offline {
			states = w.ask(ctx)
		}
		if err := r.contents(w.Registry, t, states); err != nil {
			return nil, err
		}
	}
	key := r.Object.Head().Key()
	if !w.OfFiles && r.Server == (v1.Key{}) {
		rec, err := w.Store.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		all, err := w.Status(ctx, []registry.Item{r.Item}, states)
		if err != nil {
			return nil, err
		}
		r.Record = &rec
		if s, ok := all[key]; ok {
			r.Status = &s
		}
	}
	if r.Tool() != nil {
		if err := r.tool(ctx, w); err != nil {
			return nil, err
		}
	}
	if m, ok := r.Object.(*v1.Prompt); ok && r.Ready {
		r.Prompt, _ = prompt.Compile(m) // a ready prompt compiles
		r.Tools = toolsOf(w.Registry, m)
	}
	r.Shown, err = redact.Manifest(r.Object)
	return r, err
}

// tool adds the override and the policies of a tool.
func (r *Described) tool(ctx context.Context, w *Workspace) error {
	key := r.Object.Head().Key()
	if w.Store != nil {
		all, err := w.Store.Overrides(ctx)
		if err != nil {
			return err
		}
		for i, o := range all {
			if o.Namespace == key.Namespace && o.Tool == key.Name {
				r.Override = &all[i]
			}
		}
	}
	if !r.Ready {
		return nil
	}
	ex, err := w.Registry.ExplainPolicy(ctx, v1.Call{Tool: key.Namespace + "/" + key.Name})
	r.Policies = ex.Matched
	for _, u := range ex.Unmatched {
		if len(u.Principals) > 0 {
			r.Policies = append(r.Policies, fmt.Sprintf("%s (for %s)", u.Policy, strings.Join(u.Principals, ", ")))
		}
	}
	return err
}

// contents lists the tools and prompts of a toolset.
func (r *Described) contents(reg *registry.Registry, t *v1.Toolset, states []mcp.ServerState) error {
	all, err := reg.List(registry.Query{})
	if err != nil {
		return err
	}
	for _, it := range all.Items {
		h := it.Object.Head()
		name := h.Metadata.Name
		if h.Namespace() != t.Namespace() {
			name = h.Namespace() + "/" + name
		}
		switch {
		case !search.Contains(t, h.Kind, it.Subject):
		case h.Kind == v1.KindTool:
			r.Tools = append(r.Tools, name)
		case h.Kind == v1.KindPrompt:
			r.Prompts = append(r.Prompts, name)
		}
	}
	for _, s := range states {
		server, err := reg.Get(v1.KindMCPServer, s.Key.Namespace, s.Key.Name)
		if err != nil {
			return err
		}
		for _, p := range s.Prompts {
			if o := server.Subject.Offered(p.Name); search.Contains(t, v1.KindPrompt, o) {
				r.Prompts = append(r.Prompts, o.Name)
			}
		}
	}
	return nil
}

// toolsOf lists the tools that a prompt names, without querying servers.
func toolsOf(reg *registry.Registry, m *v1.Prompt) (all []string) {
	seen := map[string]bool{}
	for _, want := range m.Spec.Tools {
		found := gateway.ToolsNamed(reg, m.Namespace(), want)
		if len(found) == 0 {
			note := " (none known)"
			if _, err := reg.Get(v1.KindPrompt, m.Namespace(), want); err == nil {
				note = " (prompt)"
			}
			all = append(all, want+note)
		}
		for _, it := range found {
			name := it.Tool().Metadata.Name
			if it.Tool().Namespace() != m.Namespace() {
				name = it.FullName
			}
			if !it.Ready {
				name += " (not ready)"
			}
			if !seen[it.FullName] {
				seen[it.FullName] = true
				all = append(all, name)
			}
		}
	}
	return all
}

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
	"toolctl.dev/toolctl/pkg/store"
)

// Describe says what is known of objects: their state, and what applies to them.
type Describe struct {
	*Config
	// Requests are the objects. One without names is about all of its kind that Selector chooses.
	Requests []Request
	Selector string
	// Offline asks no MCP server what it offers.
	Offline bool
}

// Described is what is known of one object.
type Described struct {
	registry.Item
	// Shown is the object with what may be secret masked.
	Shown v1.Object
	// Record is that of the store; nil for objects of files and servers.
	Record *store.Record
	// Override gives a tool its description; nil when none does.
	Override *store.Override
	// Policies govern a tool that is ready.
	Policies []string
	// Prompt is a prompt that is ready, and Tools those that it names.
	Prompt *prompt.Prompt
	Tools  []string
	// Status is nil for objects of files and servers.
	Status *v1.Status
	// State is what an MCP server says that was asked.
	State *mcp.ServerState
}

// Run describes the objects, and returns those that come before an error, too.
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

// describe describes the object that a name means; a server is asked, unless Offline.
func (d *Describe) describe(ctx context.Context, w *Workspace, kind, name string) (_ *Described, err error) {
	if kind == v1.KindTool && !d.Offline {
		_, _ = w.Find(ctx, v1.Call{Tool: name, Namespace: d.Namespace}) // what is missing, Get says
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
		r.Prompt, _ = prompt.Compile(m) // it is ready
		r.Tools = toolsOf(w.Registry, m)
	}
	r.Shown, err = redact.Manifest(r.Object)
	return r, err
}

// tool adds what is known of a tool.
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

// toolsOf lists the tools that a prompt names now; servers are not asked for theirs.
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

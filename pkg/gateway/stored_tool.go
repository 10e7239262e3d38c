package gateway

import (
	"context"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
)

// StoredTool is a source of the stored objects that a call of one tool needs: the tools that its name may mean, their
// MCP servers and the policies of their namespaces. If the name matches neither a tool nor an MCP server, the source
// has all objects of the store. Names are resolved as in [registry.Registry.Lookup].
func StoredTool(s store.Objects, namespace, name string) Source {
	t := storedTool{store: s, namespace: namespace, name: name}
	if ns, local, ok := strings.Cut(name, "/"); ok && (namespace == "" || namespace == ns) {
		t.namespace, t.name = ns, local
	}
	return t
}

type storedTool struct {
	store           store.Objects
	namespace, name string
}

func (t storedTool) manyWrite() bool { return store.Shared(t.store) }

func (storedTool) Watch(context.Context, func(error)) (<-chan struct{}, error) { return nil, nil }

func (t storedTool) Load(ctx context.Context) (*manifest.Set, error) {
	f := finder{ctx: ctx, store: t.store, seen: map[v1.Key]bool{}}
	if t.name != "" {
		f.tool(t.namespace, t.name)
	}
	if f.err != nil {
		return nil, f.err
	}
	if len(f.found) == 0 {
		return Stored(t.store, false).Load(ctx)
	}
	return &manifest.Set{Objects: f.found}, nil
}

// finder collects objects of a store, each once.
type finder struct {
	ctx   context.Context // of the only Load that uses the finder
	store store.Objects
	seen  map[v1.Key]bool
	found []v1.Object
	err   error
}

// list adds the objects that opts select and returns all of them.
func (f *finder) list(opts store.ListOptions) []v1.Object {
	if f.err != nil {
		return nil
	}
	list, err := f.store.List(f.ctx, opts)
	f.err = err
	var all []v1.Object
	for _, r := range list.Records {
		all = append(all, r.Object)
		if key := r.Key(); !f.seen[key] {
			f.seen[key] = true
			f.found = append(f.found, r.Object)
		}
	}
	return all
}

// tool adds the objects that a call by a name needs.
func (f *finder) tool(namespace, name string) {
	tools := f.list(store.ListOptions{Kind: v1.KindTool, Namespace: namespace, Name: name})
	for _, o := range tools {
		f.withServer(o.(*v1.Tool))
	}
	if len(tools) == 0 {
		f.ofServers(namespace, name)
	}
	namespaces := map[string]bool{}
	for _, o := range f.found {
		namespaces[o.Head().Namespace()] = true
	}
	for ns := range namespaces {
		f.list(store.ListOptions{Kind: v1.KindToolPolicy, Namespace: ns})
	}
}

// withServer adds the MCP server that a tool calls, and the other tools with the same name on the server: policies may
// use that name if it is unique.
func (f *finder) withServer(t *v1.Tool) {
	if t.Spec.MCP == nil {
		return
	}
	f.list(store.ListOptions{Kind: v1.KindMCPServer, Namespace: t.Namespace(), Name: t.Spec.MCP.Server})
	f.alike(t.Namespace(), t.RemoteName())
}

// alike adds the tools of a namespace that have a name, or call a tool with that name.
func (f *finder) alike(namespace, name string) {
	f.list(store.ListOptions{Kind: v1.KindTool, Namespace: namespace, Name: name})
	f.list(store.ListOptions{Kind: v1.KindTool, Namespace: namespace, Remote: name})
}

// ofServers adds the MCP servers whose name is a prefix of the name of a tool, as in server__tool, server.tool and
// mcp__server__tool.
func (f *finder) ofServers(namespace, name string) {
	for _, rest := range []string{name, strings.TrimPrefix(name, v1.MCPPrefix)} {
		for _, sep := range []string{"__", "."} {
			for i := strings.Index(rest, sep); i >= 0; {
				for _, s := range f.list(store.ListOptions{Kind: v1.KindMCPServer, Namespace: namespace, Name: rest[:i]}) {
					f.alike(s.Head().Namespace(), rest[i+len(sep):])
				}
				next := strings.Index(rest[i+1:], sep)
				if next < 0 {
					break
				}
				i += 1 + next
			}
		}
	}
	if len(f.found) == 0 {
		return
	}
	for _, o := range f.list(store.ListOptions{Kind: v1.KindTool, Namespace: namespace, Remote: name}) {
		f.withServer(o.(*v1.Tool))
	}
}

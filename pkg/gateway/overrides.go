package gateway

import (
	"context"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

// followOverrides gives the tools that are served the descriptions that the store has
// for them, as they change, until ctx ends.
func (g *Gateway) followOverrides(ctx context.Context) {
	missed := func(err error) { g.log.Warn("watching the overrides", "error", err) }
	again(ctx, missed, func() error {
		for all, err := range g.opts.Store.WatchOverrides(ctx) {
			if err != nil {
				return err
			}
			if applyOverrides(g.reg, all) {
				g.refresh()
			}
		}
		return nil
	})
}

// applyOverrides makes the overrides of the store the descriptions of a registry, and
// reports whether that changed any.
func applyOverrides(reg *registry.Registry, all []store.Override) bool {
	texts := make(map[v1.Key]string, len(all))
	for _, o := range all {
		texts[v1.Key{Kind: v1.KindTool, Namespace: o.Namespace, Name: o.Tool}] = o.Description
	}
	return reg.SetDescriptions(texts)
}

// OverrideTool finds the tool of a store that a name means, for an override. One that only
// an MCP server offers is taken by the name of its server: no server is started for it.
func OverrideTool(ctx context.Context, s store.Objects, namespace, name string) (v1.Key, error) {
	set, err := Stored(s, false).Load(ctx)
	if err != nil {
		return v1.Key{}, err
	}
	reg, err := registry.New(set.Objects, registry.Options{})
	if err != nil {
		return v1.Key{}, err
	}
	it, err := reg.Get(v1.KindTool, namespace, name)
	if err == nil {
		return it.Object.Head().Key(), nil
	}
	ns, local, whole := strings.Cut(name, "/")
	if !whole {
		ns, local = namespace, name
	}
	local = strings.TrimPrefix(local, v1.MCPPrefix)
	if server, _, ok := strings.Cut(local, "__"); ok {
		if found, serr := reg.Get(v1.KindMCPServer, ns, server); serr == nil {
			return v1.Key{Kind: v1.KindTool, Namespace: found.Object.Head().Namespace(), Name: local}, nil
		}
	}
	return v1.Key{}, err
}

package gateway

import (
	"context"

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

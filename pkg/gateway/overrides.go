package gateway

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

// followOverrides applies the description overrides of the store to the served tools, and follows their changes until
// ctx ends.
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

// applyOverrides sets the overrides of the store as descriptions in a registry and reports whether any description
// changed.
func applyOverrides(reg *registry.Registry, all []store.Override) bool {
	texts := make(map[v1.Key]string, len(all))
	for _, o := range all {
		texts[v1.Key{Kind: v1.KindTool, Namespace: o.Namespace, Name: o.Tool}] = o.Description
	}
	return reg.SetDescriptions(texts)
}

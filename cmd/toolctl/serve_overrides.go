package main

import (
	"context"
	"sync"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

// followOverrides gives the tools that are served the descriptions that the store has
// for them, as they change. The function that it returns ends that and waits for it.
func (c *catalog) followOverrides(ctx context.Context, s *server.Server) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		watchAgain(ctx, func() {
			for all, err := range c.w.store.WatchOverrides(ctx) {
				if err != nil {
					c.log.Warn("watching the overrides", "error", err)
					break
				}
				if applyOverrides(c.w.reg, all) {
					s.Refresh()
				}
			}
		})
	})
	return func() { cancel(); done.Wait() }
}

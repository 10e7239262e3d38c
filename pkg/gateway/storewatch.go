package gateway

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// storeWatch tells /readyz whether a store that is elsewhere answers. A replica knows that by its lease.
type storeWatch struct {
	store    store.Store
	log      *slog.Logger
	answered atomic.Pointer[time.Time] // when it did last
}

const (
	pingEvery   = time.Second
	pingTimeout = 2 * time.Second
	// pingSilence is how long a store may say nothing.
	pingSilence = 4 * time.Second
)

func newStoreWatch(st store.Store, log *slog.Logger) *storeWatch {
	w := &storeWatch{store: st, log: log}
	now := time.Now() // it was opened
	w.answered.Store(&now)
	return w
}

// notReady is why no call is taken.
func (w *storeWatch) notReady() string {
	if w == nil || time.Since(*w.answered.Load()) < pingSilence {
		return ""
	}
	return "the store: " + store.ErrUnavailable.Error()
}

// follow asks the store until ctx ends.
func (w *storeWatch) follow(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for away := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		within, cancel := context.WithTimeout(ctx, pingTimeout)
		err := store.Ping(within, w.store)
		cancel()
		switch {
		case err == nil:
			now := time.Now()
			w.answered.Store(&now)
			if away {
				w.log.Info("the store responds again")
			}
		case ctx.Err() == nil && !away:
			w.log.Warn("the store does not respond", "error", err)
		}
		away = err != nil
	}
}

package gateway

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// storeWatch reports to /readyz whether a remote store answers. A replica knows that from its lease.
type storeWatch struct {
	store    store.Store
	log      *slog.Logger
	answered atomic.Pointer[time.Time] // last successful ping
}

const (
	pingEvery   = time.Second
	pingTimeout = 2 * time.Second
	// pingSilence is the maximum time without an answer of the store.
	pingSilence = 4 * time.Second
)

func newStoreWatch(st store.Store, log *slog.Logger) *storeWatch {
	w := &storeWatch{store: st, log: log}
	now := time.Now() // opening the store succeeded
	w.answered.Store(&now)
	return w
}

// notReady returns why the gateway takes no calls, if it does not.
func (w *storeWatch) notReady() string {
	if w == nil || time.Since(*w.answered.Load()) < pingSilence {
		return ""
	}
	return "the store: " + store.ErrUnavailable.Error()
}

// follow pings the store until ctx ends.
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

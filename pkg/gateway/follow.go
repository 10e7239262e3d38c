package gateway

import (
	"context"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// every calls f after each interval, until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}

// auditFailure returns why the audit log cannot be written, in a form that anyone may read: the details are in the log.
func (g *Gateway) auditFailure() string {
	err := g.reg.AuditError()
	if err == nil {
		return ""
	}
	return "the audit cannot be written: " + store.Reason(err)
}

// followAudit retries while the audit log cannot be written, until ctx ends. A server that is not ready may get no calls
// that would retry.
func (g *Gateway) followAudit(ctx context.Context) {
	every(ctx, time.Second, func() {
		if g.reg.AuditError() != nil && g.reg.RetryAudit(ctx) == nil {
			_, late := g.reg.LateAudit()
			g.log.Info("the audit log can be written again", "late_so_far", late)
		}
	})
}

const (
	pingEvery   = time.Second
	pingTimeout = 2 * time.Second
	// pingSilence is the maximum time without an answer of the store.
	pingSilence = 4 * time.Second
)

// storeSilence returns that a remote store does not answer; "" if it does, or if nothing pings it.
func (g *Gateway) storeSilence() string {
	if at := g.answered.Load(); at == nil || time.Since(*at) < pingSilence {
		return ""
	}
	return "the store: " + store.ErrUnavailable.Error()
}

// followStore pings the store until ctx ends.
func (g *Gateway) followStore(ctx context.Context) {
	away := false
	every(ctx, pingEvery, func() {
		within, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		err := store.Ping(within, g.opts.Store)
		switch {
		case err == nil:
			now := time.Now()
			g.answered.Store(&now)
			if away {
				g.log.Info("the store responds again")
			}
		case ctx.Err() == nil && !away:
			g.log.Warn("the store does not respond", "error", err)
		}
		away = err != nil
	})
}

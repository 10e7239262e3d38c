package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

// auditWatch tells /readyz whether the audit can be written.
type auditWatch struct {
	reg *registry.Registry
	app *app
}

// failure is why the audit cannot be written, for anyone: the log has the whole of it.
func (w *auditWatch) failure() string {
	err := w.reg.AuditError()
	if err == nil {
		return ""
	}
	why := "the log says why"
	for _, known := range []error{store.ErrFull, store.ErrLimit, store.ErrReadOnly, store.ErrBusy, store.ErrDamaged} {
		if errors.Is(err, known) {
			why = known.Error()
		}
	}
	return "the audit cannot be written: " + why
}

// notReady is why no call is taken.
func (w *auditWatch) notReady() string {
	if w.app.bestEffort {
		return ""
	}
	return w.failure()
}

// warning is what calls are made without.
func (w *auditWatch) warning() string {
	if !w.app.bestEffort {
		return ""
	}
	return w.failure()
}

// follow tries again while the audit cannot be written, since a server that is not ready
// may get no calls that do. The function that it returns ends that and waits for it.
func (w *auditWatch) follow(ctx context.Context) (stop func()) {
	const pause = time.Second
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if w.reg.AuditError() != nil && w.reg.RetryAudit(ctx) == nil {
				w.app.log.Info("the audit can be written again")
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

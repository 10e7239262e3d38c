package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

// auditWatch tells /readyz whether the audit can be written.
type auditWatch struct {
	reg        *registry.Registry
	log        *slog.Logger
	bestEffort bool
}

// failure is why the audit cannot be written, for anyone: the log has the whole of it.
func (w *auditWatch) failure() string {
	err := w.reg.AuditError()
	if err == nil {
		return ""
	}
	why := "the log says why"
	for _, known := range []error{store.ErrFull, store.ErrLimit, store.ErrReadOnly, store.ErrBusy, store.ErrDamaged, store.ErrUnavailable} {
		if errors.Is(err, known) {
			why = known.Error()
		}
	}
	return "the audit cannot be written: " + why
}

// notReady is why no call is taken.
func (w *auditWatch) notReady() string {
	if w.bestEffort {
		return ""
	}
	return w.failure()
}

// warning is what calls are made without.
func (w *auditWatch) warning() string {
	if !w.bestEffort {
		return ""
	}
	return w.failure()
}

// follow tries again while the audit cannot be written, since a server that is not ready
// may get no calls that do, until ctx ends.
func (w *auditWatch) follow(ctx context.Context) {
	const pause = time.Second
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if w.reg.AuditError() != nil && w.reg.RetryAudit(ctx) == nil {
			_, late := w.reg.LateAudit()
			w.log.Info("the audit log can be written again", "late_so_far", late)
		}
	}
}

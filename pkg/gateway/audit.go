package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

// auditWatch reports to /readyz whether the audit log can be written.
type auditWatch struct {
	reg        *registry.Registry
	log        *slog.Logger
	bestEffort bool
}

// failure returns why the audit log cannot be written, in a form that anyone may read: the details are in the log.
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

// notReady returns why the gateway takes no calls, if it does not.
func (w *auditWatch) notReady() string {
	if w.bestEffort {
		return ""
	}
	return w.failure()
}

// warning returns a warning if calls run without an audit log.
func (w *auditWatch) warning() string {
	if !w.bestEffort {
		return ""
	}
	return w.failure()
}

// follow retries while the audit log cannot be written, until ctx ends. A server that is not ready may get no calls
// that would retry.
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

package gateway

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/store"
)

const (
	retentionEvery = time.Hour
	retentionLease = "audit/retention"
)

// keepAudit prunes audit records that are older than Options.AuditRetention, now and once an hour. Of the gateways that
// share a store, one does so as long as it lives.
func (g *Gateway) keepAudit(ctx context.Context) {
	st, holder := g.opts.Store, rand.Text()
	defer func() {
		final, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = st.ReturnLeases(final, holder, retentionLease) // without this the lease ends by itself
	}()
	prune := func() {
		p, err := pruneOld(ctx, st, holder, g.opts.AuditRetention)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			g.log.Warn("old audit records were not removed: toolctl will try again", "in", clip.Duration(retentionEvery), "error", err)
		case p.Lines > 0:
			g.log.Info("old audit records were removed", "lines", p.Lines, "kept", p.Kept)
		}
	}
	prune()
	every(ctx, retentionEvery, prune)
}

func pruneOld(ctx context.Context, st store.Store, holder string, age time.Duration) (p store.AuditPrune, err error) {
	lease := store.Lease{Name: retentionLease}
	all, now, err := st.HoldLeases(ctx, holder, []store.Lease{lease}, retentionEvery+retentionEvery/2)
	if err != nil || !slices.ContainsFunc(all, func(l store.Lease) bool { return l.Name == retentionLease && l.Holder == holder }) {
		return p, err
	}
	return st.PruneAudit(ctx, store.PruneOptions{Before: now.Add(-age), By: "serve --audit-retention"})
}

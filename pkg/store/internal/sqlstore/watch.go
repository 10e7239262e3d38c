package sqlstore

import (
	"context"
	"iter"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// Watch implements [store.Objects]. While it waits it holds no connection or goroutine, except those that a backend
// shares among all of its watches.
func (m Methods) Watch(ctx context.Context, from int64) iter.Seq2[store.Event, error] {
	return watch.Changes(ctx, m.b.Watched(), from, m.changesAfter)
}

// WatchOverrides implements [store.Overrides].
func (m Methods) WatchOverrides(ctx context.Context) iter.Seq2[[]store.Override, error] {
	return watch.Latest(ctx, m.b.Watched(), func(ctx context.Context) (at int64, err error) {
		err = m.b.Read(ctx, func(tx Tx) error { return One(tx, []any{&at}, m.d.LastOverride) })
		return at, err
	}, m.Overrides)
}

// FollowAudit implements [store.Audit].
func (m Methods) FollowAudit(ctx context.Context, filter store.AuditFilter, fn func([]store.AuditLine) error) error {
	return watch.Audit(ctx, m.b.Audited(), m.b, filter, fn)
}

package sqlite

import (
	"context"
	"iter"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// Watch implements [store.Objects]. It holds no connection and no goroutine while it waits.
func (s *Store) Watch(ctx context.Context, from int64) iter.Seq2[store.Event, error] {
	return watch.Changes(ctx, &s.changed, from, s.ChangesAfter)
}

// FollowAudit implements [store.Audit].
func (s *Store) FollowAudit(ctx context.Context, filter store.AuditFilter, fn func([]store.AuditLine) error) error {
	return watch.Audit(ctx, &s.audited, s, filter, fn)
}

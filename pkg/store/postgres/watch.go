package postgres

import (
	"context"
	"iter"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// Watch implements [store.Objects]. It holds no connection while it waits, but the one
// that listens for all watches of this store.
func (s *Store) Watch(ctx context.Context, from int64) iter.Seq2[store.Event, error] {
	s.listen()
	return watch.Changes(ctx, &s.changed, from, s.changesAfter)
}

// FollowAudit implements [store.Audit].
func (s *Store) FollowAudit(ctx context.Context, filter store.AuditFilter, fn func([]store.AuditLine) error) error {
	return watch.Audit(ctx, &s.audited, s, filter, fn)
}

// changesAfter reads the next changes, and whether there are more. When nothing happened this
// is one query for one number.
func (s *Store) changesAfter(ctx context.Context, from int64) ([]store.Event, bool, error) {
	at, err := s.Revision(ctx)
	if err != nil || at == from {
		return nil, false, err
	}
	return s.Methods.ChangesAfter(ctx, from)
}

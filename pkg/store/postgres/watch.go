package postgres

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
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
func (s *Store) changesAfter(ctx context.Context, from int64) (events []store.Event, more bool, err error) {
	const batch = 256
	at, err := s.Revision(ctx)
	if err != nil || at == from {
		return nil, false, err
	}
	var log []plan.Event
	err = s.read(ctx, func(tx pgx.Tx) error {
		log, more = nil, false
		at, err := revision(ctx, tx)
		if err != nil || at == from {
			return err
		}
		if from > at {
			return watch.TooOld(from, at)
		}
		rows, err := tx.Query(ctx, "SELECT type, "+columns+" FROM toolctl_changes WHERE resource_version > $1 ORDER BY resource_version LIMIT $2", from, batch)
		if err != nil {
			return err
		}
		log, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e plan.Event, err error) {
			err = row.Scan(append([]any{&e.Type}, fields(&e.Row)...)...)
			return e, err
		})
		if err != nil {
			return err
		}
		if len(log) == 0 || log[0].Row.Version != from+1 {
			return watch.TooOld(from, at)
		}
		more = log[len(log)-1].Row.Version < at
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	events, err = plan.Events(log)
	return events, more && err == nil, s.explain(ctx, err)
}

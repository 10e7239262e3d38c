package sqlite

import (
	"context"
	"database/sql"
	"iter"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// Watch implements [store.Objects]. It holds no connection and no goroutine while it waits.
func (s *Store) Watch(ctx context.Context, from int64) iter.Seq2[store.Event, error] {
	return watch.Changes(ctx, &s.changed, from, s.changesAfter)
}

// FollowAudit implements [store.Audit].
func (s *Store) FollowAudit(ctx context.Context, filter store.AuditFilter, fn func([]store.AuditLine) error) error {
	return watch.Audit(ctx, &s.audited, s, filter, fn)
}

// changesAfter reads the next changes, and whether there are more.
//
// When nothing happened this is one query for one number. PRAGMA data_version
// would cost as much, need a connection of its own for each watch, and also move
// with every counter and audit line.
func (s *Store) changesAfter(ctx context.Context, from int64) (events []store.Event, more bool, err error) {
	const batch = 256
	var log []plan.Event
	err = s.read(ctx, func(c *sql.Conn) error {
		log, more = nil, false
		at, err := revision(ctx, c)
		if err != nil || at == from {
			return err
		}
		if from > at {
			return watch.TooOld(from, at)
		}
		if log, err = queryLog(ctx, c, from, batch); err != nil {
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

func queryLog(ctx context.Context, c *sql.Conn, from int64, limit int) ([]plan.Event, error) {
	rows, err := c.QueryContext(ctx, "SELECT type, "+columns+" FROM changes WHERE resource_version > ? ORDER BY resource_version LIMIT ?", from, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var log []plan.Event
	for rows.Next() {
		var e plan.Event
		if err := rows.Scan(append([]any{&e.Type}, fields(&e.Row)...)...); err != nil {
			return nil, err
		}
		log = append(log, e)
	}
	return log, rows.Err()
}

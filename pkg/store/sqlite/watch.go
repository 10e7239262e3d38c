package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// Watch yields every change after resourceVersion from, in order, those of other
// processes too, and waits for more until ctx ends or the loop is left:
//
//	for event, err := range st.Watch(ctx, list.ResourceVersion) {
//
// An error ends it: [store.ErrTooOld] when changes after from are no longer kept, or
// when from is not of this store, and [store.ErrClosed]. The end of ctx is no error. It
// holds no connection and no goroutine while it waits.
func (s *Store) Watch(ctx context.Context, from int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		tick := time.NewTicker(s.interval)
		defer tick.Stop()
		at := from
		for {
			wake := s.notifier.next() // before looking, so that nothing falls between
			events, more, err := s.changesAfter(ctx, at)
			if ctx.Err() != nil {
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				at = e.Record.ResourceVersion
			}
			if err != nil {
				yield(store.Event{}, err)
				return
			}
			if more {
				continue
			}
			if err := s.await(ctx, wake, tick.C); err != nil {
				if errors.Is(err, store.ErrClosed) {
					yield(store.Event{}, err)
				}
				return
			}
		}
	}
}

// await returns nil when it is time to look again: something was committed in this
// process, or the interval of watches is over. Else ctx ended, or the store was closed.
func (s *Store) await(ctx context.Context, wake <-chan struct{}, tick <-chan time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return store.ErrClosed
	case <-wake:
	case <-tick:
	}
	return nil
}

// changesAfter reads the next changes, and whether there are more.
//
// When nothing happened this is one query for one number. PRAGMA data_version
// would cost as much, need a connection of its own for each watch, and also move
// with every counter and audit line.
func (s *Store) changesAfter(ctx context.Context, from int64) (events []store.Event, more bool, err error) {
	const batch = 256
	var log []event
	err = s.read(ctx, func(c *sql.Conn) error {
		log, more = nil, false
		at, err := revision(ctx, c)
		if err != nil || at == from {
			return err
		}
		if from > at {
			return fmt.Errorf("%w: %d was asked for, but the store is at %d only, so it was made anew: list again and watch from there", store.ErrTooOld, from, at)
		}
		if log, err = queryLog(ctx, c, from, batch); err != nil {
			return err
		}
		if len(log) == 0 || log[0].row.version != from+1 {
			return fmt.Errorf("%w: the changes after %d are no longer kept: list again and watch from there", store.ErrTooOld, from)
		}
		more = log[len(log)-1].row.version < at
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	for i := range log {
		rec, err := log[i].row.decode()
		if err != nil {
			return events, false, s.explain(ctx, err)
		}
		events = append(events, store.Event{Type: log[i].typ, Record: rec})
	}
	return events, more, nil
}

func queryLog(ctx context.Context, c *sql.Conn, from int64, limit int) ([]event, error) {
	rows, err := c.QueryContext(ctx, "SELECT type, "+columns+" FROM changes WHERE resource_version > ? ORDER BY resource_version LIMIT ?", from, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var log []event
	for rows.Next() {
		var e event
		if err := rows.Scan(append([]any{&e.typ}, e.row.fields()...)...); err != nil {
			return nil, err
		}
		log = append(log, e)
	}
	return log, rows.Err()
}

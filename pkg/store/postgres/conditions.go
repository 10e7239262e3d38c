package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"toolctl.dev/toolctl/pkg/store"
)

// Turned implements [store.Conditions]. It writes only when a status turned.
func (s *Store) Turned(ctx context.Context, seen []store.Seen) (since []time.Time, err error) {
	var turned []store.Turn
	look := func(tx pgx.Tx) error {
		noted, err := turns(ctx, tx)
		since, turned = store.TurnsOf(noted, seen, time.Now())
		return err
	}
	if err := s.read(ctx, look); err != nil || len(turned) == 0 {
		return since, err
	}
	err = s.write(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "LOCK TABLE toolctl_conditions IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		if err := look(tx); err != nil { // another may have noted it meanwhile
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM toolctl_conditions WHERE uid NOT IN (SELECT uid FROM toolctl_objects)"); err != nil {
			return err
		}
		for _, t := range turned {
			_, err := tx.Exec(ctx, `INSERT INTO toolctl_conditions (uid, type, status, since) VALUES ($1, $2, $3, $4)
				ON CONFLICT (uid, type) DO UPDATE SET status = excluded.status, since = excluded.since`, t.UID, t.Type, t.Status, t.Since.UnixMicro())
			if err != nil {
				return err
			}
		}
		return nil
	})
	return since, err
}

func turns(ctx context.Context, tx pgx.Tx) ([]store.Turn, error) {
	rows, err := tx.Query(ctx, "SELECT uid, type, status, since FROM toolctl_conditions")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []store.Turn
	for rows.Next() {
		var t store.Turn
		var at int64
		if err := rows.Scan(&t.UID, &t.Type, &t.Status, &at); err != nil {
			return nil, err
		}
		t.Since = timeOf(at)
		all = append(all, t)
	}
	return all, rows.Err()
}

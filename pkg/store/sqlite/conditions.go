package sqlite

import (
	"context"
	"database/sql"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// Turned implements [store.Conditions]. It writes only when a status turned.
func (s *Store) Turned(ctx context.Context, seen []store.Seen) (since []time.Time, err error) {
	var turned []store.Turn
	look := func(c *sql.Conn) error {
		noted, err := turns(ctx, c)
		since, turned = store.TurnsOf(noted, seen, time.Now())
		return err
	}
	if err := s.read(ctx, look); err != nil || len(turned) == 0 {
		return since, err
	}
	err = s.write(ctx, func(c *sql.Conn) error {
		if err := look(c); err != nil { // another may have noted it meanwhile
			return err
		}
		if _, err := c.ExecContext(ctx, "DELETE FROM conditions WHERE uid NOT IN (SELECT uid FROM objects)"); err != nil {
			return err
		}
		return each(ctx, c, "INSERT OR REPLACE INTO conditions (uid, type, status, since) VALUES (?, ?, ?, ?)", turned,
			func(t store.Turn) []any { return []any{t.UID, t.Type, t.Status, t.Since.UnixMicro()} })
	})
	return since, err
}

func turns(ctx context.Context, c *sql.Conn) ([]store.Turn, error) {
	rows, err := c.QueryContext(ctx, "SELECT uid, type, status, since FROM conditions")
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
		t.Since = time.UnixMicro(at).UTC()
		all = append(all, t)
	}
	return all, rows.Err()
}

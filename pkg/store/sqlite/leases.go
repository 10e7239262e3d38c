package sqlite

import (
	"context"
	"database/sql"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// HoldLeases implements [store.Leases].
func (s *Store) HoldLeases(ctx context.Context, holder string, leases []store.Lease, lasts time.Duration) (all []store.Lease, now time.Time, err error) {
	hold := func(ctx context.Context, c *sql.Conn) error {
		all, now = nil, s.now().UTC()
		if len(leases) > 0 {
			if _, err := c.ExecContext(ctx, "DELETE FROM leases WHERE expires <= ?", now.UnixMicro()); err != nil {
				return err
			}
		}
		for _, l := range leases {
			_, err := c.ExecContext(ctx, `INSERT INTO leases (name, holder, value, expires)
				SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM leases WHERE name = ?1) OR (SELECT count(*) FROM leases) < ?5
				ON CONFLICT (name) DO UPDATE SET value = excluded.value, expires = excluded.expires WHERE leases.holder = excluded.holder`,
				l.Name, holder, l.Value, now.Add(lasts).UnixMicro(), store.MaxLeases)
			if err != nil {
				return err
			}
		}
		rows, err := c.QueryContext(ctx, "SELECT name, holder, value, expires FROM leases WHERE expires > ? ORDER BY name", now.UnixMicro())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var l store.Lease
			var expires int64
			if err := rows.Scan(&l.Name, &l.Holder, &l.Value, &expires); err != nil {
				return err
			}
			l.Expires = time.UnixMicro(expires).UTC()
			all = append(all, l)
		}
		return rows.Err()
	}
	if len(leases) > 0 {
		err = s.writeShort(ctx, &shortWrite{do: hold})
	} else {
		err = s.read(ctx, func(c *sql.Conn) error { return hold(ctx, c) })
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return all, now, nil
}

// ReturnLeases implements [store.Leases].
func (s *Store) ReturnLeases(ctx context.Context, holder string, names ...string) error {
	return s.writeShort(ctx, &shortWrite{do: func(ctx context.Context, c *sql.Conn) error {
		if len(names) == 0 {
			_, err := c.ExecContext(ctx, "DELETE FROM leases WHERE holder = ?", holder)
			return err
		}
		for _, name := range names {
			if _, err := c.ExecContext(ctx, "DELETE FROM leases WHERE holder = ? AND name = ?", holder, name); err != nil {
				return err
			}
		}
		return nil
	}})
}

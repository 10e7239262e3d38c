package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// PutRun implements [store.Runs].
func (s *Store) PutRun(ctx context.Context, r store.Run) error {
	if err := r.Check(); err != nil {
		return err
	}
	return s.write(ctx, func(c *sql.Conn) error {
		var others int
		if err := c.QueryRowContext(ctx, "SELECT count(*) FROM runs WHERE id <> ?", r.ID).Scan(&others); err != nil {
			return err
		}
		if others >= store.MaxRuns {
			return plan.Refuse(store.ErrRunsFull)
		}
		state := append([]byte{}, r.State...) // never NULL
		_, err := c.ExecContext(ctx, "INSERT OR REPLACE INTO runs (id, prompt, updated, state) VALUES (?, ?, ?, ?)", r.ID, r.Prompt, time.Now().UnixMicro(), state)
		return err
	})
}

// GetRun implements [store.Runs].
func (s *Store) GetRun(ctx context.Context, id string) (r store.Run, err error) {
	err = s.read(ctx, func(c *sql.Conn) error {
		var at int64
		err := c.QueryRowContext(ctx, "SELECT id, prompt, updated, state FROM runs WHERE id = ?", id).Scan(&r.ID, &r.Prompt, &at, &r.State)
		if errors.Is(err, sql.ErrNoRows) {
			return plan.Refuse(store.NoRun(id))
		}
		r.Updated = time.UnixMicro(at).UTC()
		return err
	})
	return r, err
}

// ListRuns implements [store.Runs].
func (s *Store) ListRuns(ctx context.Context) (all []store.Run, err error) {
	err = s.read(ctx, func(c *sql.Conn) error {
		all = nil
		rows, err := c.QueryContext(ctx, "SELECT id, prompt, updated FROM runs ORDER BY updated, id")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r store.Run
			var at int64
			if err := rows.Scan(&r.ID, &r.Prompt, &at); err != nil {
				return err
			}
			r.Updated = time.UnixMicro(at).UTC()
			all = append(all, r)
		}
		return rows.Err()
	})
	return all, err
}

// DeleteRun implements [store.Runs].
func (s *Store) DeleteRun(ctx context.Context, id string) error {
	return s.write(ctx, func(c *sql.Conn) error {
		done, err := c.ExecContext(ctx, "DELETE FROM runs WHERE id = ?", id)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return plan.Refuse(store.NoRun(id))
	})
}

package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// PutRun implements [store.Runs].
func (s *Store) PutRun(ctx context.Context, r store.Run) error {
	if err := r.Check(); err != nil {
		return err
	}
	return s.write(ctx, func(tx pgx.Tx) error {
		// Alone: those who put runs at once must not put more than there may be.
		if _, err := tx.Exec(ctx, "LOCK TABLE toolctl_runs IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		var others int
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM toolctl_runs WHERE id <> $1", r.ID).Scan(&others); err != nil {
			return err
		}
		if others >= store.MaxRuns {
			return plan.Refuse(store.ErrRunsFull)
		}
		_, err := tx.Exec(ctx, `INSERT INTO toolctl_runs (id, prompt, updated, state) VALUES ($1, $2, toolctl_now(), $3)
			ON CONFLICT (id) DO UPDATE SET prompt = excluded.prompt, updated = excluded.updated, state = excluded.state`,
			r.ID, text(r.Prompt), append([]byte{}, r.State...)) // never NULL
		if err != nil {
			return err
		}
		return s.room(ctx, tx)
	})
}

// GetRun implements [store.Runs].
func (s *Store) GetRun(ctx context.Context, id string) (r store.Run, err error) {
	err = s.read(ctx, func(tx pgx.Tx) error {
		var at int64
		err := tx.QueryRow(ctx, "SELECT id, prompt, updated, state FROM toolctl_runs WHERE id = $1", text(id)).Scan(&r.ID, &r.Prompt, &at, &r.State)
		if errors.Is(err, pgx.ErrNoRows) {
			return plan.Refuse(store.NoRun(id))
		}
		r.Updated = timeOf(at)
		return err
	})
	return r, err
}

// ListRuns implements [store.Runs].
func (s *Store) ListRuns(ctx context.Context) (all []store.Run, err error) {
	err = s.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT id, prompt, updated FROM toolctl_runs ORDER BY updated, id")
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r store.Run, err error) {
			var at int64
			err = row.Scan(&r.ID, &r.Prompt, &at)
			r.Updated = timeOf(at)
			return r, err
		})
		return err
	})
	return all, err
}

// DeleteRun implements [store.Runs].
func (s *Store) DeleteRun(ctx context.Context, id string) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, "DELETE FROM toolctl_runs WHERE id = $1", text(id))
		if err != nil || done.RowsAffected() > 0 {
			return err
		}
		return plan.Refuse(store.NoRun(id))
	})
}

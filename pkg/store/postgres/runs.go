package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
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
		if err := sqlstore.RoomForRun(shared{s, ctx, tx}, r.ID); err != nil {
			return err
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

package sqlite

import (
	"context"
	"database/sql"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
)

// PutRun implements [store.Runs].
func (s *Store) PutRun(ctx context.Context, r store.Run) error {
	if err := r.Check(); err != nil {
		return err
	}
	return s.write(ctx, func(c *sql.Conn) error {
		if err := sqlstore.RoomForRun(tx{s, ctx, c}, r.ID); err != nil {
			return err
		}
		state := append([]byte{}, r.State...) // never NULL
		_, err := c.ExecContext(ctx, "INSERT OR REPLACE INTO runs (id, prompt, updated, state) VALUES (?, ?, ?, ?)", r.ID, r.Prompt, s.now().UnixMicro(), state)
		return err
	})
}

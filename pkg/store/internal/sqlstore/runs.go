package sqlstore

import (
	"context"
	"time"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// PutRun implements [store.Runs].
func (m Methods) PutRun(ctx context.Context, r store.Run) error {
	if err := r.Check(); err != nil {
		return err
	}
	now, err := m.b.Now(ctx)
	if err != nil {
		return err
	}
	return m.b.Write(ctx, func(tx Tx) error {
		if err := tx.Lock("runs"); err != nil { // so that concurrent writers cannot exceed the limit
			return err
		}
		var others int
		if err := One(tx, []any{&others}, "SELECT count(*) FROM toolctl_runs WHERE id <> $1", r.ID); err != nil {
			return err
		}
		if others >= store.MaxRuns {
			return plan.Refuse(store.ErrRunsFull)
		}
		_, err := tx.Exec(`INSERT INTO toolctl_runs (id, prompt, updated, state) VALUES ($1, $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET prompt = excluded.prompt, updated = excluded.updated, state = excluded.state`,
			r.ID, r.Prompt, now.UnixMicro(), append([]byte{}, r.State...)) // never NULL
		if err != nil {
			return err
		}
		return tx.Room()
	})
}

// GetRun implements [store.Runs].
func (m Methods) GetRun(ctx context.Context, id string) (r store.Run, err error) {
	err = m.b.Read(ctx, func(tx Tx) error {
		var at int64
		there, err := find(tx, []any{&r.ID, &r.Prompt, &at, &r.State}, "SELECT id, prompt, updated, state FROM toolctl_runs WHERE id = $1", id)
		if err == nil && !there {
			return plan.Refuse(store.NoRun(id))
		}
		r.Updated = time.UnixMicro(at).UTC()
		return err
	})
	return r, err
}

// ListRuns implements [store.Runs].
func (m Methods) ListRuns(ctx context.Context) (runs []store.Run, err error) {
	err = m.b.Read(ctx, func(tx Tx) error {
		runs, err = all(tx, func(row Rows) (r store.Run, err error) {
			var at int64
			err = row.Scan(&r.ID, &r.Prompt, &at)
			r.Updated = time.UnixMicro(at).UTC()
			return r, err
		}, "SELECT id, prompt, updated FROM toolctl_runs ORDER BY updated, id")
		return err
	})
	return runs, err
}

// DeleteRun implements [store.Runs].
func (m Methods) DeleteRun(ctx context.Context, id string) error {
	return m.b.Write(ctx, func(tx Tx) error {
		n, err := tx.Exec("DELETE FROM toolctl_runs WHERE id = $1", id)
		if err != nil || n > 0 {
			return err
		}
		return plan.Refuse(store.NoRun(id))
	})
}

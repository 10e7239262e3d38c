package sqlstore

import (
	"context"
	"time"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// RoomForRun refuses a run when there are as many others as there may be.
func RoomForRun(tx Tx, id string) error {
	var others int
	if err := One(tx, []any{&others}, "SELECT count(*) FROM toolctl_runs WHERE id <> $1", id); err != nil {
		return err
	}
	if others >= store.MaxRuns {
		return plan.Refuse(store.ErrRunsFull)
	}
	return nil
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

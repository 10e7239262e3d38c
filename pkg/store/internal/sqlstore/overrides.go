package sqlstore

import (
	"context"
	"time"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
)

const overrideColumns = "SELECT version, namespace, tool, description, author, time FROM toolctl_overrides "

// Overrides implements [store.Overrides].
func (m Methods) Overrides(ctx context.Context) ([]store.Override, error) {
	return m.overrides(ctx, overrideColumns+`o
		WHERE description <> '' AND version = (SELECT max(version) FROM toolctl_overrides WHERE namespace = o.namespace AND tool = o.tool)
		ORDER BY namespace, tool`)
}

// OverrideHistory implements [store.Overrides].
func (m Methods) OverrideHistory(ctx context.Context, namespace, tool string) ([]store.Override, error) {
	return m.overrides(ctx, overrideColumns+"WHERE tool = $1 AND ($2 = '' OR namespace = $2) ORDER BY version DESC", tool, namespace)
}

func (m Methods) overrides(ctx context.Context, query string, args ...any) (found []store.Override, err error) {
	err = m.b.Read(ctx, func(tx Tx) error {
		found, err = all(tx, func(row Rows) (o store.Override, err error) {
			var at int64
			err = row.Scan(&o.Version, &o.Namespace, &o.Tool, &o.Description, &o.Author, &at)
			o.Time = time.UnixMicro(at).UTC()
			return o, err
		}, query, args...)
		return err
	})
	return found, err
}

// SetOverride implements [store.Overrides].
func (m Methods) SetOverride(ctx context.Context, o store.Override) (store.Override, error) {
	now, err := m.b.Now(ctx)
	if err == nil {
		o, err = o.Complete(now)
	}
	if err != nil {
		return o, err
	}
	err = m.b.Write(ctx, func(tx Tx) error {
		if err := tx.Lock("overrides"); err != nil {
			return err
		}
		var before int64
		if err := One(tx, []any{&before}, "SELECT coalesce(max(version), 0) FROM toolctl_overrides WHERE namespace = $1 AND tool = $2", o.Namespace, o.Tool); err != nil {
			return err
		}
		if err := One(tx, []any{&o.Version}, m.d.NextOverride); err != nil {
			return err
		}
		_, err := tx.Exec("INSERT INTO toolctl_overrides (version, namespace, tool, description, author, time) VALUES ($1, $2, $3, $4, $5, $6)",
			o.Version, o.Namespace, o.Tool, o.Description, o.Author, o.Time.UnixMicro())
		if err != nil {
			return err
		}
		if err := tx.Tell("overrides"); err != nil {
			return err
		}
		return tx.AddAudit(chain.Override(&o, before))
	})
	if err == nil {
		m.b.Notify()
	}
	return o, err
}

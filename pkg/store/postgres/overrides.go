package postgres

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// SetOverride implements [store.Overrides].
func (s *Store) SetOverride(ctx context.Context, o store.Override) (store.Override, error) {
	o, err := o.Complete(time.Now())
	if err != nil {
		return o, err
	}
	err = s.write(ctx, func(tx pgx.Tx) error {
		if o.Version, err = next(ctx, tx, "overrides", 1); err != nil {
			return err
		}
		var before int64
		err := tx.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM toolctl_overrides WHERE namespace = $1 AND tool = $2", o.Namespace, o.Tool).Scan(&before)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO toolctl_overrides (version, namespace, tool, description, author, time) VALUES ($1, $2, $3, $4, $5, $6)",
			o.Version, o.Namespace, o.Tool, o.Description, o.Author, o.Time.UnixMicro())
		if err != nil {
			return err
		}
		if err := changed(ctx, tx, "overrides"); err != nil {
			return err
		}
		return s.addAudit(ctx, tx, chain.Override(&o, before))
	})
	if err != nil {
		return o, err
	}
	s.changed.Notify()
	return o, nil
}

// Overrides implements [store.Overrides].
func (s *Store) Overrides(ctx context.Context) ([]store.Override, error) {
	return s.overrides(ctx, `SELECT version, namespace, tool, description, author, time FROM toolctl_overrides o
		WHERE description <> '' AND version = (SELECT max(version) FROM toolctl_overrides WHERE namespace = o.namespace AND tool = o.tool)
		ORDER BY namespace, tool`)
}

// OverrideHistory implements [store.Overrides].
func (s *Store) OverrideHistory(ctx context.Context, namespace, tool string) ([]store.Override, error) {
	return s.overrides(ctx, `SELECT version, namespace, tool, description, author, time FROM toolctl_overrides
		WHERE tool = $1 AND ($2 = '' OR namespace = $2) ORDER BY version DESC`, tool, namespace)
}

func (s *Store) overrides(ctx context.Context, query string, args ...any) ([]store.Override, error) {
	var all []store.Override
	err := s.read(ctx, func(tx pgx.Tx) error {
		all = nil
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var o store.Override
			var at int64
			if err := rows.Scan(&o.Version, &o.Namespace, &o.Tool, &o.Description, &o.Author, &at); err != nil {
				return err
			}
			o.Time = timeOf(at)
			all = append(all, o)
		}
		return rows.Err()
	})
	return all, err
}

// WatchOverrides implements [store.Overrides].
func (s *Store) WatchOverrides(ctx context.Context) iter.Seq2[[]store.Override, error] {
	s.listen()
	return watch.Latest(ctx, &s.changed, s.overrideVersion, s.Overrides)
}

func (s *Store) overrideVersion(ctx context.Context) (at int64, err error) {
	err = s.one(ctx, "SELECT value FROM toolctl_revision WHERE name = 'overrides'", nil, &at)
	return at, s.explain(ctx, err)
}

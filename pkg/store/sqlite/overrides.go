package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"

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
	err = s.write(ctx, func(c *sql.Conn) error {
		var before int64
		err := c.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM overrides WHERE namespace = ? AND tool = ?", o.Namespace, o.Tool).Scan(&before)
		if err != nil {
			return err
		}
		res, err := c.ExecContext(ctx, "INSERT INTO overrides (namespace, tool, description, author, time) VALUES (?, ?, ?, ?, ?)",
			o.Namespace, o.Tool, o.Description, o.Author, o.Time.UnixMicro())
		if err != nil {
			return err
		}
		if o.Version, err = res.LastInsertId(); err != nil {
			return err
		}
		return addAudit(ctx, c, chain.Override(&o, before))
	})
	if err != nil {
		return o, err
	}
	s.changed.Notify()
	return o, nil
}

// Overrides implements [store.Overrides].
func (s *Store) Overrides(ctx context.Context) ([]store.Override, error) {
	return s.overrides(ctx, `SELECT version, namespace, tool, description, author, time FROM overrides o
		WHERE description <> '' AND version = (SELECT max(version) FROM overrides WHERE namespace = o.namespace AND tool = o.tool)
		ORDER BY namespace, tool`)
}

// OverrideHistory implements [store.Overrides].
func (s *Store) OverrideHistory(ctx context.Context, namespace, tool string) ([]store.Override, error) {
	return s.overrides(ctx, `SELECT version, namespace, tool, description, author, time FROM overrides
		WHERE tool = ? AND (? = '' OR namespace = ?) ORDER BY version DESC`, tool, namespace, namespace)
}

func (s *Store) overrides(ctx context.Context, query string, args ...any) ([]store.Override, error) {
	var all []store.Override
	err := s.read(ctx, func(c *sql.Conn) error {
		all = nil
		rows, err := c.QueryContext(ctx, query, args...)
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
			o.Time = time.UnixMicro(at).UTC()
			all = append(all, o)
		}
		return rows.Err()
	})
	return all, err
}

// WatchOverrides implements [store.Overrides].
func (s *Store) WatchOverrides(ctx context.Context) iter.Seq2[[]store.Override, error] {
	return watch.Latest(ctx, &s.changed, s.overrideVersion, s.Overrides)
}

func (s *Store) overrideVersion(ctx context.Context) (at int64, err error) {
	err = s.read(ctx, func(c *sql.Conn) error {
		err := c.QueryRowContext(ctx, "SELECT version FROM overrides ORDER BY version DESC LIMIT 1").Scan(&at)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return at, err
}

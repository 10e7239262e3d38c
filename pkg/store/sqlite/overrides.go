package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// SetOverride implements [store.Overrides].
func (s *Store) SetOverride(ctx context.Context, o store.Override) (store.Override, error) {
	o, err := o.Complete(s.now())
	if err != nil {
		return o, err
	}
	err = s.write(ctx, func(c *sql.Conn) error {
		before, err := sqlstore.OverrideBefore(tx{s, ctx, c}, &o)
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

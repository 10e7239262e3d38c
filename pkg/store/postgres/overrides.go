package postgres

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
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
		before, err := sqlstore.OverrideBefore(shared{s, ctx, tx}, &o)
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

// WatchOverrides implements [store.Overrides].
func (s *Store) WatchOverrides(ctx context.Context) iter.Seq2[[]store.Override, error] {
	s.listen()
	return watch.Latest(ctx, &s.changed, s.overrideVersion, s.Overrides)
}

func (s *Store) overrideVersion(ctx context.Context) (at int64, err error) {
	err = s.look(ctx, "SELECT value FROM toolctl_revision WHERE name = 'overrides'", nil, &at)
	return at, s.explain(ctx, err)
}

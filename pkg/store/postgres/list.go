package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// Get implements [store.Objects].
func (s *Store) Get(ctx context.Context, key v1.Key) (store.Record, error) {
	var r plan.Row
	err := s.read(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "SELECT "+columns+" FROM toolctl_objects WHERE kind = $1 AND namespace = $2 AND name = $3",
			text(key.Kind), text(key.Namespace), text(key.Name)).Scan(fields(&r)...)
		if errors.Is(err, pgx.ErrNoRows) {
			nf, err := plan.NotFound(reader{ctx, tx}, key)
			if err != nil {
				return err
			}
			return plan.Refuse(nf)
		}
		return err
	})
	if err != nil {
		return store.Record{}, err
	}
	rec, err := r.Decode()
	return rec, s.explain(ctx, err)
}

// List implements [store.Objects].
func (s *Store) List(ctx context.Context, opts store.ListOptions) (store.List, error) {
	if err := opts.Check(); err != nil {
		return store.List{}, err
	}
	kinds := v1.Kinds()
	if opts.Kind != "" {
		kinds = []string{text(opts.Kind)}
	}
	where, args := []string{"kind = ANY($1)"}, []any{kinds}
	for _, f := range []struct{ column, value string }{{"namespace", opts.Namespace}, {"set_name", opts.Set}, {"name", opts.Name}, {"remote", opts.Remote}} {
		if f.value != "" {
			args = append(args, text(f.value))
			where = append(where, fmt.Sprintf("%s = $%d", f.column, len(args)))
		}
	}
	if opts.Remote != "" {
		where = append(where, "remote <> ''") // as its index has it
	}
	from := " FROM toolctl_objects WHERE " + strings.Join(where, " AND ")
	var out store.List
	var found []plan.Row
	err := s.read(ctx, func(tx pgx.Tx) (err error) {
		out = store.List{}
		if out.ResourceVersion, err = revision(ctx, tx); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT count(*)"+from, args...).Scan(&out.Total); err != nil || opts.Offset >= out.Total {
			return err
		}
		limit := out.Total
		if opts.Limit > 0 {
			limit = opts.Limit
		}
		found, err = queryRows(ctx, tx, fmt.Sprintf("SELECT %s%s ORDER BY array_position($1, kind), namespace, name LIMIT $%d OFFSET $%d", columns, from, len(args)+1, len(args)+2), append(args, limit, opts.Offset)...)
		return err
	})
	if err != nil {
		return store.List{}, err
	}
	if out.Records, err = plan.Listed(found, opts); err != nil {
		return store.List{}, s.explain(ctx, err)
	}
	return out, nil
}

func queryRows(ctx context.Context, tx pgx.Tx, query string, args ...any) ([]plan.Row, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r plan.Row, err error) {
		err = row.Scan(fields(&r)...)
		return r, err
	})
}

// Revision implements [store.Objects].
func (s *Store) Revision(ctx context.Context) (at int64, err error) {
	err = s.one(ctx, "SELECT value FROM toolctl_revision WHERE name = 'objects'", nil, &at)
	return at, s.explain(ctx, err)
}

func revision(ctx context.Context, tx pgx.Tx) (at int64, err error) {
	err = tx.QueryRow(ctx, "SELECT value FROM toolctl_revision WHERE name = 'objects'").Scan(&at)
	return at, err
}

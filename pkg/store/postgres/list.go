package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
)

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
		if err := tx.QueryRow(ctx, dialect.Revision).Scan(&out.ResourceVersion); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT count(*)"+from, args...).Scan(&out.Total); err != nil || opts.Offset >= out.Total {
			return err
		}
		limit := out.Total
		if opts.Limit > 0 {
			limit = opts.Limit
		}
		found, err = sqlstore.Objects(shared{s, ctx, tx}, fmt.Sprintf("SELECT %s%s ORDER BY array_position($1, kind), namespace, name LIMIT $%d OFFSET $%d", sqlstore.Columns, from, len(args)+1, len(args)+2), append(args, limit, opts.Offset)...)
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

// Revision implements [store.Objects].
func (s *Store) Revision(ctx context.Context) (at int64, err error) {
	err = s.look(ctx, dialect.Revision, nil, &at)
	return at, s.explain(ctx, err)
}

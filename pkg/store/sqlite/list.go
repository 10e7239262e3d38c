package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

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
		kinds = []string{opts.Kind}
	}
	var out store.List
	var found []plan.Row
	err := s.read(ctx, func(c *sql.Conn) (err error) {
		out, found = store.List{}, nil
		if out.ResourceVersion, err = revision(ctx, c); err != nil {
			return err
		}
		// A kind at a time, the rows come in order out of the index, and the order
		// of the kinds is nowhere stored.
		for _, kind := range kinds {
			if err := addRows(tx{s, ctx, c}, kind, opts, &out, &found); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.List{}, err
	}
	if out.Records, err = plan.Listed(found, opts); err != nil {
		return store.List{}, s.explain(ctx, err)
	}
	return out, nil
}

// addRows reads the objects of one kind.
func addRows(t tx, kind string, opts store.ListOptions, l *store.List, found *[]plan.Row) error {
	where, args := []string{"kind = $1"}, []any{kind}
	for _, f := range []struct{ column, value string }{{"namespace", opts.Namespace}, {"set_name", opts.Set}, {"name", opts.Name}, {"remote", opts.Remote}} {
		if f.value != "" {
			args = append(args, f.value)
			where = append(where, fmt.Sprintf("%s = $%d", f.column, len(args)))
		}
	}
	if opts.Remote != "" {
		where = append(where, "remote <> ''") // as its index has it
	}
	from := " FROM objects WHERE " + strings.Join(where, " AND ")
	var total int
	if err := t.c.QueryRowContext(t.ctx, "SELECT count(*)"+from, args...).Scan(&total); err != nil {
		return err
	}
	skip := max(opts.Offset-l.Total, 0)
	l.Total += total
	limit := total
	if opts.Limit > 0 {
		limit = opts.Limit - len(*found)
	}
	if limit <= 0 || skip >= total {
		return nil
	}
	rows, err := sqlstore.Objects(t, fmt.Sprintf("SELECT %s%s ORDER BY namespace, name LIMIT $%d OFFSET $%d", sqlstore.Columns, from, len(args)+1, len(args)+2), append(args, limit, skip)...)
	*found = append(*found, rows...)
	return err
}

// Revision implements [store.Objects].
func (s *Store) Revision(ctx context.Context) (int64, error) {
	var at int64
	err := s.read(ctx, func(c *sql.Conn) (err error) {
		at, err = revision(ctx, c)
		return err
	})
	return at, err
}

func revision(ctx context.Context, c *sql.Conn) (int64, error) {
	var at int64
	err := c.QueryRowContext(ctx, "SELECT value FROM revision").Scan(&at)
	return at, err
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// Get implements [store.Objects].
func (s *Store) Get(ctx context.Context, key v1.Key) (store.Record, error) {
	var r plan.Row
	err := s.read(ctx, func(c *sql.Conn) error {
		err := c.QueryRowContext(ctx, "SELECT "+columns+" FROM objects WHERE kind = ? AND namespace = ? AND name = ?",
			key.Kind, key.Namespace, key.Name).Scan(fields(&r)...)
		if errors.Is(err, sql.ErrNoRows) {
			nf, err := plan.NotFound(reader{ctx, c}, key)
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
			if err := addRows(ctx, c, kind, opts, &out, &found); err != nil {
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
func addRows(ctx context.Context, c *sql.Conn, kind string, opts store.ListOptions, l *store.List, found *[]plan.Row) error {
	where, args := []string{"kind = ?"}, []any{kind}
	if opts.Namespace != "" {
		where, args = append(where, "namespace = ?"), append(args, opts.Namespace)
	}
	if opts.Set != "" {
		where, args = append(where, "set_name = ?"), append(args, opts.Set)
	}
	if opts.Name != "" {
		where, args = append(where, "name = ?"), append(args, opts.Name)
	}
	if opts.Remote != "" {
		where, args = append(where, "remote = ? AND remote <> ''"), append(args, opts.Remote)
	}
	from := " FROM objects WHERE " + strings.Join(where, " AND ")
	var total int
	if err := c.QueryRowContext(ctx, "SELECT count(*)"+from, args...).Scan(&total); err != nil {
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
	*found = slices.Grow(*found, min(limit, total-skip))
	return queryRows(ctx, c, found, "SELECT "+columns+from+" ORDER BY namespace, name LIMIT ? OFFSET ?", append(args, limit, skip)...)
}

func queryRows(ctx context.Context, c *sql.Conn, into *[]plan.Row, query string, args ...any) error {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r plan.Row
		if err := rows.Scan(fields(&r)...); err != nil {
			return err
		}
		*into = append(*into, r)
	}
	return rows.Err()
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

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// Get returns one object. A missing one is a *[v1.NotFoundError] with near names.
func (s *Store) Get(ctx context.Context, key v1.Key) (store.Record, error) {
	var r row
	err := s.read(ctx, func(c *sql.Conn) error {
		err := c.QueryRowContext(ctx, "SELECT "+columns+" FROM objects WHERE kind = ? AND namespace = ? AND name = ?",
			key.Kind, key.Namespace, key.Name).Scan(r.fields()...)
		if errors.Is(err, sql.ErrNoRows) {
			nf, err := notFound(ctx, c, key)
			if err != nil {
				return err
			}
			return refuse(nf)
		}
		return err
	})
	if err != nil {
		return store.Record{}, err
	}
	rec, err := r.decode()
	return rec, s.explain(ctx, err)
}

// notFound makes the error for a missing object.
func notFound(ctx context.Context, c *sql.Conn, key v1.Key) (*v1.NotFoundError, error) {
	e := &v1.NotFoundError{Kind: key.Kind, Name: displayName(key)}
	rows, err := c.QueryContext(ctx, "SELECT namespace, name FROM objects WHERE kind = ? ORDER BY namespace, name", key.Kind)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		near := v1.Key{Kind: key.Kind}
		if err := rows.Scan(&near.Namespace, &near.Name); err != nil {
			return nil, err
		}
		if near.Name == key.Name || near.Namespace == key.Namespace && v1.Nearest(key.Name, []string{near.Name}) != "" {
			e.Candidates = append(e.Candidates, displayName(near))
		}
	}
	slices.Sort(e.Candidates)
	e.Candidates = e.Candidates[:min(len(e.Candidates), 5)]
	return e, rows.Err()
}

func displayName(k v1.Key) string {
	if k.Namespace == v1.DefaultNamespace {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// List returns the objects that opts choose, all of one version of the store.
func (s *Store) List(ctx context.Context, opts store.ListOptions) (store.List, error) {
	if opts.Offset < 0 || opts.Limit < 0 {
		return store.List{}, fmt.Errorf("list: offset %d and limit %d may not be negative", opts.Offset, opts.Limit)
	}
	kinds := v1.Kinds()
	if opts.Kind != "" {
		kinds = []string{opts.Kind}
	}
	var out store.List
	var found []row
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
	if out.Records, err = decodeAll(found); err != nil {
		return store.List{}, s.explain(ctx, err)
	}
	if !opts.Layout {
		for _, r := range out.Records {
			r.Object.Head().Layout = nil
		}
	}
	return out, nil
}

// addRows reads the objects of one kind.
func addRows(ctx context.Context, c *sql.Conn, kind string, opts store.ListOptions, l *store.List, found *[]row) error {
	where, args := []string{"kind = ?"}, []any{kind}
	if opts.Namespace != "" {
		where, args = append(where, "namespace = ?"), append(args, opts.Namespace)
	}
	if opts.Set != "" {
		where, args = append(where, "set_name = ?"), append(args, opts.Set)
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

func queryRows(ctx context.Context, c *sql.Conn, into *[]row, query string, args ...any) error {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(r.fields()...); err != nil {
			return err
		}
		*into = append(*into, r)
	}
	return rows.Err()
}

// Revision returns the resourceVersion of the last change in the store, 0 when
// nothing was ever applied.
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

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// ListOptions choose what [Store.List] returns. The zero value is everything.
type ListOptions struct {
	// Kind, Namespace and Set keep the objects that have them; "" keeps all.
	Kind, Namespace, Set string
	// Offset skips that many objects; Limit is the most to return, 0 for all.
	Offset, Limit int
	// Layout keeps Header.Layout of the objects. Default: it is dropped, for the memory
	// it takes.
	Layout bool
}

// List is the result of [Store.List].
type List struct {
	// Records are in the order of [v1.Kinds], then of namespace, then of name.
	Records []Record
	// Total is how many objects there are without Offset and Limit.
	Total int
	// ResourceVersion is the version of the store that was read; a watch that
	// starts there misses nothing.
	ResourceVersion int64
}

// Get returns one object. A missing one is a *[v1.NotFoundError] with near names.
func (s *Store) Get(ctx context.Context, key v1.Key) (Record, error) {
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
		return Record{}, err
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
func (s *Store) List(ctx context.Context, opts ListOptions) (List, error) {
	if opts.Offset < 0 || opts.Limit < 0 {
		return List{}, fmt.Errorf("list: offset %d and limit %d may not be negative", opts.Offset, opts.Limit)
	}
	kinds := v1.Kinds()
	if opts.Kind != "" {
		kinds = []string{opts.Kind}
	}
	var out List
	var found []row
	err := s.read(ctx, func(c *sql.Conn) (err error) {
		out, found = List{}, nil
		if out.ResourceVersion, err = revision(ctx, c); err != nil {
			return err
		}
		// A kind at a time, the rows come in order out of the index, and the order
		// of the kinds is nowhere stored.
		for _, kind := range kinds {
			if err := out.add(ctx, c, kind, opts, &found); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return List{}, err
	}
	if out.Records, err = decodeAll(found); err != nil {
		return List{}, s.explain(ctx, err)
	}
	if !opts.Layout {
		for _, r := range out.Records {
			r.Object.Head().Layout = nil
		}
	}
	return out, nil
}

// add reads the objects of one kind.
func (l *List) add(ctx context.Context, c *sql.Conn, kind string, opts ListOptions, found *[]row) error {
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

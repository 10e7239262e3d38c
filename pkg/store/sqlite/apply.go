package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// Apply implements [store.Objects].
func (s *Store) Apply(ctx context.Context, objects []v1.Object, opts store.ApplyOptions) ([]store.Change, error) {
	wanted, err := plan.Want(objects, opts)
	if err != nil {
		return nil, err
	}
	var p *plan.Plan
	prepare := func(c *sql.Conn) (err error) {
		p, err = wanted.Plan(reader{ctx, c}, time.Now().UnixMicro())
		return err
	}
	if opts.DryRun {
		err = s.read(ctx, prepare)
	} else {
		err = s.write(ctx, func(c *sql.Conn) error {
			if err := prepare(c); err != nil {
				return err
			}
			if err := carryOut(ctx, c, p, s.keep); err != nil {
				return err
			}
			return addAudit(ctx, c, p.Lines(opts.By, cmp.Or(opts.Command, "apply"), string(store.Pruned))...)
		})
	}
	if err != nil {
		return nil, err
	}
	if !opts.DryRun && len(p.Log) > 0 {
		s.changed.Notify()
	}
	return p.Changes, nil
}

// Delete implements [store.Objects].
func (s *Store) Delete(ctx context.Context, keys []v1.Key, opts store.DeleteOptions) ([]store.Record, error) {
	var p *plan.Plan
	err := s.write(ctx, func(c *sql.Conn) (err error) {
		if p, err = plan.Delete(reader{ctx, c}, keys, time.Now().UnixMicro()); err != nil {
			return err
		}
		if err := carryOut(ctx, c, p, s.keep); err != nil {
			return err
		}
		return addAudit(ctx, c, p.Lines(opts.By, cmp.Or(opts.Command, "delete"), "deleted")...)
	})
	if err != nil {
		return nil, err
	}
	if len(p.Log) > 0 {
		s.changed.Notify()
	}
	return p.Removed, nil
}

// reader reads for a plan, within the transaction of c.
type reader struct {
	ctx context.Context // of the one call that it lives for
	c   *sql.Conn
}

func (r reader) Revision() (int64, error) { return revision(r.ctx, r.c) }

func (r reader) Rows(keys []v1.Key) ([]plan.Row, error) {
	get, err := r.c.PrepareContext(r.ctx, "SELECT "+columns+" FROM objects WHERE kind = ? AND namespace = ? AND name = ?")
	if err != nil {
		return nil, err
	}
	defer get.Close()
	rows := make([]plan.Row, 0, len(keys))
	for _, key := range keys {
		var row plan.Row
		err := get.QueryRowContext(r.ctx, key.Kind, key.Namespace, key.Name).Scan(fields(&row)...)
		switch {
		case err == nil:
			rows = append(rows, row)
		case !errors.Is(err, sql.ErrNoRows):
			return nil, err
		}
	}
	return rows, nil
}

func (r reader) Members(set string) (rows []plan.Row, err error) {
	err = queryRows(r.ctx, r.c, &rows, "SELECT "+columns+" FROM objects WHERE set_name = ?", set)
	return rows, err
}

func (r reader) Names(kind string) ([]v1.Key, error) {
	rows, err := r.c.QueryContext(r.ctx, "SELECT namespace, name FROM objects WHERE kind = ? ORDER BY namespace, name", kind)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var keys []v1.Key
	for rows.Next() {
		key := v1.Key{Kind: kind}
		if err := rows.Scan(&key.Namespace, &key.Name); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, rows.Err()
}

// columns are the columns of a row, in the order of [fields] and [values].
const columns = "kind, namespace, name, set_name, uid, resource_version, generation, created, updated, manifest, origin"

func fields(r *plan.Row) []any {
	return []any{&r.Key.Kind, &r.Key.Namespace, &r.Key.Name, &r.Set, &r.UID, &r.Version, &r.Generation, &r.Created, &r.Updated, &r.Manifest, &r.Origin}
}

func values(r *plan.Row) []any {
	return []any{r.Key.Kind, r.Key.Namespace, r.Key.Name, r.Set, r.UID, r.Version, r.Generation, r.Created, r.Updated, r.Manifest, r.Origin}
}

// carryOut writes what the plan says, within the transaction that made it.
func carryOut(ctx context.Context, c *sql.Conn, p *plan.Plan, keep int64) error {
	upsert := "INSERT OR REPLACE INTO objects (" + columns + ", remote) VALUES (" + marks(12) + ")"
	err := each(ctx, c, upsert, p.Upserts, func(r plan.Row) []any { return append(values(&r), r.Remote) })
	if err != nil {
		return err
	}
	err = each(ctx, c, "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", p.Gone,
		func(k v1.Key) []any { return []any{k.Kind, k.Namespace, k.Name} })
	if err == nil {
		err = addRevision(ctx, c, p.Revision)
	}
	if err != nil || len(p.Log) == 0 {
		return err
	}
	err = each(ctx, c, "INSERT INTO changes (type, "+columns+") VALUES ("+marks(12)+")", p.Kept(keep),
		func(e plan.Event) []any { return append([]any{string(e.Type)}, values(&e.Row)...) })
	if err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "DELETE FROM changes WHERE resource_version <= ?", p.Version-keep); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, "UPDATE revision SET value = ?", p.Version)
	return err
}

// each carries out a statement for each item.
func each[T any](ctx context.Context, c *sql.Conn, query string, items []T, args func(T) []any) error {
	if len(items) == 0 {
		return nil
	}
	stmt, err := c.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for _, item := range items {
		if _, err := stmt.ExecContext(ctx, args(item)...); err != nil {
			return err
		}
	}
	return nil
}

func marks(n int) string { return strings.Repeat("?, ", n-1) + "?" }

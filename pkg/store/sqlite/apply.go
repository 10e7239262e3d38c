package sqlite

import (
	"context"
	"database/sql"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
)

// carryOut writes what the plan says, within the transaction that made it.
func carryOut(ctx context.Context, c *sql.Conn, p *plan.Plan, keep int64) error {
	upsert := "INSERT OR REPLACE INTO objects (" + sqlstore.Columns + ", remote) VALUES (" + marks(12) + ")"
	err := each(ctx, c, upsert, p.Upserts, func(r plan.Row) []any { return append(sqlstore.Values(&r), r.Remote) })
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
	err = each(ctx, c, "INSERT INTO changes (type, "+sqlstore.Columns+") VALUES ("+marks(12)+")", p.Kept(keep),
		func(e plan.Event) []any { return append([]any{string(e.Type)}, sqlstore.Values(&e.Row)...) })
	if err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "DELETE FROM changes WHERE resource_version <= ?", p.Version-keep); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, "UPDATE revision SET value = ?", p.Version)
	return err
}

// addRevision writes a revision within the transaction of its apply.
func addRevision(ctx context.Context, c *sql.Conn, rev *plan.Revision) error {
	if rev == nil {
		return nil
	}
	err := each(ctx, c, "UPDATE revision_objects SET last = ? WHERE set_name = ? AND kind = ? AND namespace = ? AND name = ? AND last = 0", rev.Ends,
		func(k v1.Key) []any { return []any{rev.Number - 1, rev.Set, k.Kind, k.Namespace, k.Name} })
	if err != nil {
		return err
	}
	err = each(ctx, c, "INSERT INTO revision_objects ("+sqlstore.Columns+", digest, first) VALUES ("+marks(13)+")", rev.Starts,
		func(m plan.Member) []any { return append(sqlstore.Values(&m.Row), m.Digest, m.First) })
	if err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "INSERT INTO revisions (set_name, number, record) VALUES (?, ?, ?)", rev.Set, rev.Number, rev.Record); err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "DELETE FROM revisions WHERE set_name = ? AND number < ?", rev.Set, rev.Oldest); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, "DELETE FROM revision_objects WHERE set_name = ? AND last > 0 AND last < ?", rev.Set, rev.Oldest)
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

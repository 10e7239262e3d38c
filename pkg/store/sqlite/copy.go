package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strings"

	"toolctl.dev/toolctl/pkg/store"
)

const lastRows = `SELECT '` + store.LastVersion + `' AS name, value, NULL AS hash FROM revision
	UNION ALL SELECT '` + store.LastLine + `', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'audit'), 0), NULL
	UNION ALL SELECT '` + store.LastPruned + `', pruned, hash FROM audit_start`

// CopyOut implements [store.Copier].
func (s *Store) CopyOut(ctx context.Context, read func(store.Rows) error) error {
	return s.explain(ctx, s.withConn(ctx, func(c *sql.Conn) error {
		return s.transact(ctx, c, "BEGIN", func(c *sql.Conn) error {
			var before int64
			if err := c.QueryRowContext(ctx, "SELECT before - pruned FROM audit_start").Scan(&before); err != nil {
				return err
			}
			if before > 0 {
				return fmt.Errorf("%s: the first lines of its audit are older than the chain and cannot be copied: remove them with 'toolctl audit prune --before'", s.shown)
			}
			return read(func(t store.Table) iter.Seq2[[]any, error] { return tableRows(ctx, c, t) })
		})
	}))
}

func tableRows(ctx context.Context, c *sql.Conn, t store.Table) iter.Seq2[[]any, error] {
	from := t.Name
	switch from {
	case "last":
		from = "(" + lastRows + ")"
	case "approvals":
		from += " ORDER BY rowid"
	default:
		from += " ORDER BY 1"
	}
	return func(yield func([]any, error) bool) {
		rows, err := c.QueryContext(ctx, "SELECT "+strings.Join(t.Columns, ", ")+" FROM "+from)
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			row, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
			for i := range row {
				into[i] = &row[i]
			}
			if !yield(row, rows.Scan(into...)) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// CopyIn implements [store.Copier].
func (s *Store) CopyIn(ctx context.Context, tables []store.Table, rows store.Rows) error {
	defer s.changed.Notify()
	return s.write(ctx, func(c *sql.Conn) error {
		for _, t := range tables {
			if err := fillTable(ctx, c, t, rows(t)); err != nil {
				return err
			}
		}
		return nil
	})
}

func fillTable(ctx context.Context, c *sql.Conn, t store.Table, rows iter.Seq2[[]any, error]) error {
	if t.Name == "last" {
		return setLast(ctx, c, rows)
	}
	var there bool
	if err := c.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+t.Name+")").Scan(&there); err != nil {
		return err
	}
	if there {
		return store.ErrNotEmpty
	}
	insert, err := c.PrepareContext(ctx, "INSERT INTO "+t.Name+" ("+strings.Join(t.Columns, ", ")+") VALUES (?"+strings.Repeat(", ?", len(t.Columns)-1)+")")
	if err != nil {
		return err
	}
	defer insert.Close()
	for row, err := range rows {
		if err != nil {
			return err
		}
		if _, err := insert.ExecContext(ctx, row...); err != nil {
			return err
		}
	}
	return nil
}

// setLast sets the numbers that were given out last; what has had one is not empty.
func setLast(ctx context.Context, c *sql.Conn, rows iter.Seq2[[]any, error]) error {
	var there bool
	if err := c.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM ("+lastRows+") WHERE value > 0)").Scan(&there); err != nil {
		return err
	}
	if there {
		return store.ErrNotEmpty
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		switch row[0] {
		case store.LastVersion:
			_, err = c.ExecContext(ctx, "UPDATE revision SET value = ?", row[1])
		case store.LastLine: // SQLite raises it to that of the lines (sqlite.org/autoinc.html)
			_, err = c.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) VALUES ('audit', ?)", row[1])
		case store.LastPruned:
			_, err = c.ExecContext(ctx, "UPDATE audit_start SET before = 0, pruned = ?, hash = ?", row[1], row[2])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

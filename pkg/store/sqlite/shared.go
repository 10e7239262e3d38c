package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

var dialect = sqlstore.Dialect{
	Place:        "rowid",
	Revision:     "SELECT value FROM revision",
	SetRevision:  "UPDATE revision SET value = $1",
	LastOverride: "SELECT coalesce(max(version), 0) FROM overrides",
	NextOverride: "SELECT coalesce(max(version), 0) + 1 FROM overrides",
	LastLine:     "SELECT coalesce(max(id), 0) FROM audit",
	Line:         "id",
	Audit:        "audit WHERE true",
	Namespace:    "CASE WHEN json_valid(CAST(record AS TEXT)) THEN json_extract(CAST(record AS TEXT), '$.namespace') END",
	Start:        "SELECT pruned, hash FROM audit_start",
	SetStart:     "UPDATE audit_start SET pruned = $1, hash = $2 WHERE $3 >= 0",
	Glob:         func(pattern string) (string, string) { return "GLOB", strings.ReplaceAll(pattern, "[", "[[]") },
	Copying: sqlstore.Copying{
		Left:  "SELECT before > pruned FROM audit_start",
		Why:   "the first lines of its audit are older than the chain and cannot be copied: remove them with 'toolctl audit prune --before'",
		Last:  lastRows,
		Given: "SELECT EXISTS (SELECT 1 FROM (" + lastRows + ") WHERE value > 0)",
		SetLast: map[string]string{
			store.LastVersion: "UPDATE revision SET value = $1",
			store.LastLine:    "INSERT INTO sqlite_sequence (name, seq) VALUES ('audit', $1)", // SQLite raises it to that of the lines (sqlite.org/autoinc.html)
			store.LastPruned:  "UPDATE audit_start SET before = 0, pruned = $1, hash = $2",
		},
	},
}

const lastRows = "SELECT '" + store.LastVersion + "' AS name, value, NULL AS hash FROM revision UNION ALL SELECT '" + store.LastLine + "', " + lastLine +
	", NULL UNION ALL SELECT '" + store.LastPruned + "', pruned, hash FROM audit_start"

// backend implements [sqlstore.Backend] for a store.
type backend struct{ *Store }

func (b backend) Read(ctx context.Context, fn func(sqlstore.Tx) error) error {
	return b.read(ctx, func(c *sql.Conn) error { return fn(tx{b.Store, ctx, c}) })
}

func (b backend) Write(ctx context.Context, fn func(sqlstore.Tx) error) error {
	return b.write(ctx, func(c *sql.Conn) error { return fn(tx{b.Store, ctx, c}) })
}

func (b backend) Now(context.Context) (time.Time, error) { return b.now(), nil }

func (b backend) Explain(ctx context.Context, err error) error { return b.explain(ctx, err) }
func (b backend) Notify()                                      { b.changed.Notify() }
func (b backend) Watched() *watch.Source                       { return &b.changed }
func (b backend) Audited() *watch.Source                       { return &b.audited }

// tx implements [sqlstore.Tx] for a transaction.
type tx struct {
	s   *Store
	ctx context.Context // of the only call that uses the transaction
	c   *sql.Conn
}

// here replaces the table names by those of SQLite.
func here(query string) string { return strings.ReplaceAll(query, "toolctl_", "") }

func (t tx) Exec(query string, args ...any) (int64, error) {
	res, err := t.c.ExecContext(t.ctx, here(query), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (t tx) Query(query string, args ...any) (sqlstore.Rows, error) {
	found, err := t.c.QueryContext(t.ctx, here(query), args...)
	if err != nil {
		return nil, err
	}
	return rows{found}, nil
}

type rows struct{ *sql.Rows }

func (r rows) Close() { _ = r.Rows.Close() } // Err has the error

func (tx) Lock(string) error { return nil } // a writer already excludes all others
func (tx) Tell(string) error { return nil } // others poll

func (t tx) AddAudit(lines ...v1.AuditRecord) error { return addAudit(t.ctx, t.c, lines...) }

func (tx) Room() error { return nil } // SQLite itself enforces the limit

func (t tx) Each(statement string, args iter.Seq[[]any]) error {
	prepared, err := t.c.PrepareContext(t.ctx, here(statement))
	if err != nil {
		return err
	}
	defer prepared.Close()
	for values := range args {
		if _, err := prepared.ExecContext(t.ctx, values...); err != nil {
			return err
		}
	}
	return nil
}

func (t tx) Fill(table store.Table, rows iter.Seq2[[]any, error]) (err error) {
	insert := "INSERT INTO " + table.Name + " (" + strings.Join(table.Columns, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(table.Columns)-1) + ")"
	return errors.Join(t.Each(insert, func(yield func([]any) bool) {
		for row, failed := range rows {
			if err = failed; err != nil || !yield(row) {
				return
			}
		}
	}), err)
}

// Size implements [store.Sized]: it counts the file and its WAL.
func (s *Store) Size(context.Context) (bytes int64, err error) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(s.name + suffix)
		switch {
		case err == nil:
			bytes += info.Size()
		case suffix == "" || !errors.Is(err, fs.ErrNotExist):
			return 0, fmt.Errorf("%s: %w", s.shown, regular.Reason(err))
		}
	}
	return bytes, nil
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Sized = (*Store)(nil)
)

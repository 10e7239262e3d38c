package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

var dialect = sqlstore.Dialect{
	Place:     "rowid",
	Revision:  "SELECT value FROM revision",
	LastLine:  "SELECT coalesce(max(id), 0) FROM audit",
	Line:      "id",
	Audit:     "audit WHERE true",
	Namespace: "CASE WHEN json_valid(CAST(record AS TEXT)) THEN json_extract(CAST(record AS TEXT), '$.namespace') END",
	Start:     "SELECT pruned, hash FROM audit_start",
	SetStart:  "UPDATE audit_start SET pruned = $1, hash = $2 WHERE $3 >= 0",
	Glob:      func(pattern string) (string, string) { return "GLOB", strings.ReplaceAll(pattern, "[", "[[]") },
}

// backend is a store as the shared methods need it.
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

// tx is a transaction as the shared methods need it.
type tx struct {
	s   *Store
	ctx context.Context // of the one call that it lives for
	c   *sql.Conn
}

// here has the tables by their names here.
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

func (r rows) Close() { _ = r.Rows.Close() } // what failed is in Err

func (tx) Lock(string) error { return nil } // whoever writes is alone
func (tx) Tell(string) error { return nil } // others look again and again

func (t tx) AddAudit(lines ...v1.AuditRecord) error { return addAudit(t.ctx, t.c, lines...) }

func (t tx) CarryOut(p *plan.Plan) error { return carryOut(t.ctx, t.c, p, t.s.keep) }

func (t tx) Rows(keys []v1.Key) ([]plan.Row, error) {
	get, err := t.c.PrepareContext(t.ctx, "SELECT "+sqlstore.Columns+" FROM objects WHERE kind = ? AND namespace = ? AND name = ?")
	if err != nil {
		return nil, err
	}
	defer get.Close()
	rows := make([]plan.Row, 0, len(keys))
	for _, key := range keys {
		var row plan.Row
		err := get.QueryRowContext(t.ctx, key.Kind, key.Namespace, key.Name).Scan(sqlstore.Fields(&row)...)
		switch {
		case err == nil:
			rows = append(rows, row)
		case !errors.Is(err, sql.ErrNoRows):
			return nil, err
		}
	}
	return rows, nil
}

// Size implements [store.Sized]: the file, and what was written to its log since.
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

package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

var dialect = sqlstore.Dialect{
	Place:     "place",
	Revision:  "SELECT value FROM toolctl_revision WHERE name = 'objects'",
	LastLine:  "SELECT seq FROM toolctl_heads WHERE chain = '" + auditChain + "'",
	Line:      "seq",
	Audit:     "toolctl_audit WHERE chain = '" + auditChain + "'",
	Namespace: "toolctl_namespace(record)",
	Start:     "SELECT pruned, start FROM toolctl_heads WHERE chain = '" + auditChain + "' FOR UPDATE",
	SetStart:  "UPDATE toolctl_heads SET pruned = $1, start = $2, bytes = bytes - $3 WHERE chain = '" + auditChain + "'",
	Glob:      func(pattern string) (string, string) { return "LIKE", likeGlob.Replace(pattern) },
}

// likeGlob makes a pattern of LIKE of a glob.
var likeGlob = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`, `?`, `_`)

// backend is a store as the shared methods need it.
type backend struct{ *Store }

func (b backend) Read(ctx context.Context, fn func(sqlstore.Tx) error) error {
	return b.read(ctx, func(tx pgx.Tx) error { return fn(shared{b.Store, ctx, tx}) })
}

func (b backend) Write(ctx context.Context, fn func(sqlstore.Tx) error) error {
	return b.write(ctx, func(tx pgx.Tx) error { return fn(shared{b.Store, ctx, tx}) })
}

func (b backend) Now(ctx context.Context) (time.Time, error) {
	var micros int64
	err := b.one(ctx, "SELECT toolctl_now()", nil, &micros)
	return time.UnixMicro(micros), b.explain(ctx, err)
}

func (b backend) Explain(ctx context.Context, err error) error { return b.explain(ctx, err) }
func (b backend) Notify()                                      { b.changed.Notify() }

func (b backend) Watched() *watch.Source {
	b.listen()
	return &b.changed
}

// shared is a transaction as the shared methods need it.
type shared struct {
	s   *Store
	ctx context.Context // of the one call that it lives for
	tx  pgx.Tx
}

// texts makes every text one that PostgreSQL takes.
func texts(args []any) []any {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = text(s)
		}
	}
	return args
}

func (t shared) Exec(query string, args ...any) (int64, error) {
	done, err := t.tx.Exec(t.ctx, query, texts(args)...)
	return done.RowsAffected(), err
}

func (t shared) Query(query string, args ...any) (sqlstore.Rows, error) {
	return t.tx.Query(t.ctx, query, texts(args)...)
}

func (t shared) Lock(what string) error {
	if what == "conditions" {
		_, err := t.tx.Exec(t.ctx, "LOCK TABLE toolctl_conditions IN SHARE ROW EXCLUSIVE MODE")
		return err
	}
	_, err := next(t.ctx, t.tx, what, 0)
	return err
}

func (t shared) Tell(what string) error { return changed(t.ctx, t.tx, what) }

func (t shared) AddAudit(lines ...v1.AuditRecord) error { return t.s.addAudit(t.ctx, t.tx, lines...) }

func (t shared) CarryOut(p *plan.Plan) error { return t.s.carryOut(t.ctx, t.tx, p) }

func (t shared) Rows(keys []v1.Key) ([]plan.Row, error) {
	kinds, namespaces, names := columnsOf(keys)
	return sqlstore.Objects(t, "SELECT "+sqlstore.Columns+` FROM toolctl_objects o
		JOIN unnest($1::text[], $2::text[], $3::text[]) AS k (kind, namespace, name) USING (kind, namespace, name)`, kinds, namespaces, names)
}

// TakeApproval implements [store.Approvals].
func (s *Store) TakeApproval(ctx context.Context, p v1.PendingCall, name string) (v1.PendingCall, error) {
	p.Subject = text(p.Subject) // which is compared with what is stored
	return s.Methods.TakeApproval(ctx, p, name)
}

// Size implements [store.Sized]: the tables of the store, whose database may have others, with their indexes.
func (s *Store) Size(ctx context.Context) (bytes int64, err error) {
	err = s.read(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
			WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND relname LIKE 'toolctl\_%'`).Scan(&bytes)
	})
	return bytes, err
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Sized = (*Store)(nil)
)

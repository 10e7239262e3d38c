package postgres

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

var dialect = sqlstore.Dialect{
	Place:        "place",
	Revision:     "SELECT value FROM toolctl_revision WHERE name = 'objects'",
	SetRevision:  "UPDATE toolctl_revision SET value = $1, bytes = " + objectBytes + " WHERE name = 'objects'",
	LastOverride: "SELECT value FROM toolctl_revision WHERE name = 'overrides'",
	NextOverride: "UPDATE toolctl_revision SET value = value + 1 WHERE name = 'overrides' RETURNING value",
	LastLine:     "SELECT seq FROM toolctl_heads WHERE chain = '" + auditChain + "'",
	Line:         "seq",
	Audit:        "toolctl_audit WHERE chain = '" + auditChain + "'",
	Namespace:    "toolctl_namespace(record)",
	Start:        "SELECT pruned, start FROM toolctl_heads WHERE chain = '" + auditChain + "' FOR UPDATE",
	SetStart:     "UPDATE toolctl_heads SET pruned = $1, start = $2, bytes = bytes - $3 WHERE chain = '" + auditChain + "'",
	Glob:         func(pattern string) (string, string) { return "LIKE", likeGlob.Replace(pattern) },
	Copying: sqlstore.Copying{
		// A copy has no time limit.
		Begin: []string{"SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)"},
		Alone: []string{"SELECT 1 FROM toolctl_heads FOR UPDATE", "SELECT 1 FROM toolctl_revision ORDER BY name FOR UPDATE"},
		End: []string{
			`UPDATE toolctl_heads SET hash = coalesce((SELECT hash FROM toolctl_audit ORDER BY seq DESC LIMIT 1), start),
				bytes = (SELECT coalesce(sum(octet_length(record)), 0) FROM toolctl_audit)`,
			"UPDATE toolctl_revision SET bytes = " + objectBytes + " WHERE name = 'objects'",
			"UPDATE toolctl_revision SET value = (SELECT coalesce(max(version), 0) FROM toolctl_overrides) WHERE name = 'overrides'",
		},
		Left: fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM toolctl_counters WHERE octet_length(key) > %d)", maxKey),
		Why:  fmt.Sprintf("a count has a key of more than %d bytes, of which only a hash is kept: it cannot be copied; wait until it has expired", maxKey),
		Last: `SELECT '` + store.LastVersion + `' AS name, value, NULL::bytea AS hash FROM toolctl_revision WHERE name = 'objects'
			UNION ALL SELECT '` + store.LastLine + `', seq, NULL FROM toolctl_heads WHERE chain = '` + auditChain + `'
			UNION ALL SELECT '` + store.LastPruned + `', pruned, start FROM toolctl_heads WHERE chain = '` + auditChain + `'`,
		Given: "SELECT EXISTS (SELECT 1 FROM toolctl_heads WHERE seq > 0) OR EXISTS (SELECT 1 FROM toolctl_revision WHERE name <> 'approvals' AND value > 0)",
		SetLast: map[string]string{
			store.LastVersion: "UPDATE toolctl_revision SET value = $1 WHERE name = 'objects'",
			store.LastLine:    "UPDATE toolctl_heads SET seq = $1 WHERE chain = '" + auditChain + "'",
			store.LastPruned:  "UPDATE toolctl_heads SET pruned = $1, start = coalesce($2, start) WHERE chain = '" + auditChain + "'",
		},
	},
}

// objectBytes is the size of the objects and their revisions.
const objectBytes = `(SELECT coalesce(sum(octet_length(manifest) + octet_length(origin)), 0) FROM toolctl_objects)
	+ (SELECT coalesce(sum(octet_length(manifest) + octet_length(origin)), 0) FROM toolctl_revision_objects)`

// likeGlob converts a glob to a pattern for LIKE.
var likeGlob = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`, `?`, `_`)

// backend implements [sqlstore.Backend] for a store.
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

func (b backend) Audited() *watch.Source { return &b.audited }

// shared implements [sqlstore.Tx] for a transaction.
type shared struct {
	s   *Store
	ctx context.Context // of the only call that uses the transaction
	tx  pgx.Tx
}

// texts replaces every text by one that PostgreSQL accepts.
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

func (t shared) Each(statement string, args iter.Seq[[]any]) error {
	var b pgx.Batch
	for values := range args {
		b.Queue(statement, texts(values)...)
	}
	return t.tx.SendBatch(t.ctx, &b).Close()
}

func (t shared) Fill(table store.Table, rows iter.Seq2[[]any, error]) error {
	columns := table.Columns
	if table.Name == "audit" {
		columns = append(append([]string{"seq"}, columns[1:]...), "chain")
	}
	next, stop := iter.Pull2(rows)
	defer stop()
	var read error
	_, err := t.tx.CopyFrom(t.ctx, pgx.Identifier{"toolctl_" + table.Name}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		row, err, more := next()
		if read = err; !more || err != nil {
			return nil, err
		}
		switch row = texts(row); table.Name {
		case "audit":
			row = append(row, auditChain)
		case "counters":
			key, _ := row[0].(string)
			row[0] = keyOf(v1.Counter{Key: key})
		}
		return row, nil
	}))
	if read != nil {
		return read // the server's error has only the text
	}
	return err
}

func (t shared) Lock(what string) (err error) {
	switch what {
	case "conditions", "runs", "vectors":
		_, err = t.tx.Exec(t.ctx, "LOCK TABLE toolctl_"+what+" IN SHARE ROW EXCLUSIVE MODE")
	default:
		_, err = t.tx.Exec(t.ctx, "SELECT 1 FROM toolctl_revision WHERE name = $1 FOR UPDATE", what)
	}
	return err
}

// Tell makes the database notify every process of a change when the transaction is committed.
func (t shared) Tell(what string) error {
	_, err := t.tx.Exec(t.ctx, "SELECT pg_notify($1, $2)", channel, what)
	return err
}

func (t shared) AddAudit(lines ...v1.AuditRecord) error { return t.s.addAudit(t.ctx, t.tx, lines...) }

func (t shared) Room() error {
	if t.s.max == 0 {
		return nil
	}
	var bytes int64
	err := t.tx.QueryRow(t.ctx, `SELECT (SELECT bytes FROM toolctl_revision WHERE name = 'objects') + (SELECT bytes FROM toolctl_heads WHERE chain = $1)
		+ (SELECT coalesce(sum(octet_length(state)), 0) FROM toolctl_runs)`, auditChain).Scan(&bytes)
	if err == nil && bytes > t.s.max {
		err = fmt.Errorf("%w of %d bytes, nothing was changed: raise --store-max-bytes", store.ErrLimit, t.s.max)
	}
	return err
}

// TakeApproval implements [store.Approvals].
func (s *Store) TakeApproval(ctx context.Context, p v1.PendingCall, name string) (v1.PendingCall, error) {
	p.Subject = text(p.Subject) // it is compared with the stored text
	return s.Methods.TakeApproval(ctx, p, name)
}

// Size implements [store.Sized]: it counts the tables and indexes of the store, but not other tables of the database.
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

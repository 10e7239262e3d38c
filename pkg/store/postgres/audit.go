package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
)

// auditChain is the chain of the audit in the tables.
const auditChain = "audit"

// AppendAudit implements [store.Audit]. Lines that come while others are being written are
// written together, in one statement.
func (s *Store) AppendAudit(ctx context.Context, line v1.AuditRecord) error {
	l, err := chain.NewLine(line)
	if err != nil {
		return err
	}
	return s.explain(ctx, s.auditing.do(ctx, &l))
}

func (s *Store) appendAll(ctx context.Context, lines []*chain.Line) error {
	all := make([]chain.Line, len(lines))
	for i, l := range lines {
		all[i] = *l
	}
	return s.one(ctx, "SELECT "+appendCall, s.appendArgs(all), new(int64))
}

const appendCall = "toolctl_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"

func (s *Store) appendArgs(lines []chain.Line) []any {
	n := len(lines)
	times, begins := make([]int64, n), make([]int32, n)
	tools, sessions, statuses, principals, calls := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	records := make([][]byte, n)
	for i, l := range lines {
		r := &l.Record
		times[i], tools[i], sessions[i], statuses[i], principals[i] = r.Time.UnixMicro(), r.Tool, r.Session, r.Status, r.Principal
		records[i], calls[i] = l.Text, r.CallID
		switch {
		case chain.Begins(r.Status):
			begins[i] = 1
		case chain.Ends(r.Status):
			begins[i] = -1
		}
	}
	return []any{auditChain, s.max, times, tools, sessions, statuses, principals, records, calls, begins}
}

// addAudit adds lines to the chain in a transaction. They come last in it: until it ends nobody
// else can write the audit.
func (s *Store) addAudit(ctx context.Context, tx pgx.Tx, records ...v1.AuditRecord) error {
	lines, err := chain.NewLines(records...)
	if err != nil || len(lines) == 0 {
		return err
	}
	return tx.QueryRow(ctx, "SELECT "+appendCall, s.appendArgs(lines)...).Scan(new(int64))
}

// where returns the filter without its limit as a condition of SQL.
func where(f store.AuditFilter) (string, []any) {
	args := []any{auditChain}
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := []string{"chain = $1", "seq > " + arg(f.After)}
	if f.UpTo > 0 {
		where = append(where, "seq <= "+arg(f.UpTo))
	}
	if !f.Since.IsZero() {
		where = append(where, "time >= "+arg(f.Since.UnixMicro()))
	}
	for _, m := range []struct{ column, value string }{{"tool", f.Tool}, {"session", f.Session}, {"principal", f.Principal}, {"toolctl_namespace(record)", f.Namespace}} {
		switch {
		case strings.ContainsAny(m.value, "*?"):
			where = append(where, m.column+" LIKE "+arg(likeGlob.Replace(text(m.value))))
		case m.value != "":
			where = append(where, m.column+" = "+arg(text(m.value)))
		}
	}
	if f.Status != "" {
		where = append(where, "status = "+arg(text(f.Status)))
	}
	if f.Settled {
		where = append(where, "(status <> "+arg(v1.StatusStarted)+" OR seq IN (SELECT line FROM toolctl_audit_open))")
	}
	return strings.Join(where, " AND "), args
}

// likeGlob makes a pattern of LIKE of a glob.
var likeGlob = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`, `?`, `_`)

// EachAudit implements [store.Audit].
func (s *Store) EachAudit(ctx context.Context, filter store.AuditFilter, fn func(store.AuditLine) error) error {
	if err := filter.Check(); err != nil {
		return err
	}
	where, args := where(filter)
	var after, last int64
	err := s.read(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT seq FROM toolctl_heads WHERE chain = $1", auditChain).Scan(&last); err != nil || filter.Limit == 0 {
			return err
		}
		n := len(args)
		return tx.QueryRow(ctx, fmt.Sprintf("SELECT coalesce(min(seq), 1) - 1 FROM (SELECT seq FROM toolctl_audit WHERE %s AND seq <= $%d ORDER BY seq DESC LIMIT $%d) newest", where, n+1, n+2),
			append(args[:n:n], last, filter.Limit)...).Scan(&after)
	})
	for err == nil {
		var page []chain.Row
		if page, err = s.auditPage(ctx, where, args, after, last); len(page) == 0 {
			return err
		}
		for _, r := range page {
			if err := fn(store.AuditLine{ID: r.ID, Hash: hex.EncodeToString(r.Hash), Text: r.Text}); err != nil {
				return err
			}
			after = r.ID
		}
	}
	return err
}

// Bounds of what is held of the audit at once.
const (
	auditPageLines = 512
	auditPageBytes = 1 << 20
)

// auditPage reads the next lines after one and up to another, in their order.
func (s *Store) auditPage(ctx context.Context, where string, args []any, after, last int64) (page []chain.Row, err error) {
	n := len(args)
	query := fmt.Sprintf("SELECT seq, time, tool, session, status, principal, record, hash FROM toolctl_audit WHERE %s AND seq > $%d AND seq <= $%d ORDER BY seq LIMIT $%d", where, n+1, n+2, n+3)
	args = append(args[:n:n], after, last, auditPageLines)
	err = s.read(ctx, func(tx pgx.Tx) error {
		page = nil
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for size := 0; size < auditPageBytes && rows.Next(); {
			var r chain.Row
			if err := rows.Scan(&r.ID, &r.Time, &r.Tool, &r.Session, &r.Status, &r.Principal, &r.Text, &r.Hash); err != nil {
				return err
			}
			size += len(r.Text)
			page = append(page, r)
		}
		rows.Close()
		return rows.Err()
	})
	return page, err
}

// AuditHead implements [store.Audit].
func (s *Store) AuditHead(ctx context.Context) (store.AuditHead, error) {
	var hash []byte
	var head store.AuditHead
	err := s.one(ctx, "SELECT seq, hash FROM toolctl_heads WHERE chain = $1", []any{auditChain}, &head.Lines, &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("%w: the head of the audit is gone", store.ErrDamaged)
	}
	head.Hash = hex.EncodeToString(hash)
	return head, s.explain(ctx, err)
}

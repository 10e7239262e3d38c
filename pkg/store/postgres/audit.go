package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
)

// auditChain is the name of the audit chain in the tables.
const auditChain = "audit"

// AppendAudit implements [store.Audit]. Records that arrive while others are written are written together in one
// statement.
func (s *Store) AppendAudit(ctx context.Context, line v1.AuditRecord) error {
	l, err := chain.NewLine(line)
	if err != nil {
		return err
	}
	return s.explain(ctx, s.auditing.Do(ctx, l))
}

func (s *Store) appendAll(ctx context.Context, lines []chain.Line) error {
	return s.one(ctx, "SELECT "+appendCall, s.appendArgs(lines), new(int64))
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

// addAudit adds records to the chain in a transaction. It comes last in the transaction, because it blocks other
// writers of the audit log until the end.
func (s *Store) addAudit(ctx context.Context, tx pgx.Tx, records ...v1.AuditRecord) error {
	lines, err := chain.NewLines(records...)
	if err != nil || len(lines) == 0 {
		return err
	}
	return tx.QueryRow(ctx, "SELECT "+appendCall, s.appendArgs(lines)...).Scan(new(int64))
}

// AuditHead implements [store.Audit].
func (s *Store) AuditHead(ctx context.Context) (store.AuditHead, error) {
	var hash []byte
	var head store.AuditHead
	err := s.look(ctx, "SELECT seq, hash FROM toolctl_heads WHERE chain = $1", []any{auditChain}, &head.Lines, &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("%w: the head of the audit log is missing", store.ErrDamaged)
	}
	head.Hash = hex.EncodeToString(hash)
	return head, s.explain(ctx, err)
}

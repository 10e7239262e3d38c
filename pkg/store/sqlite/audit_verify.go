package sqlite

import (
	"context"
	"database/sql"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
)

// AuditHead implements [store.Audit].
func (s *Store) AuditHead(ctx context.Context) (head store.AuditHead, err error) {
	err = s.read(ctx, func(c *sql.Conn) error {
		hash, err := auditHead(ctx, c)
		if err != nil {
			return err
		}
		head.Hash = hash.String()
		return c.QueryRowContext(ctx, "SELECT "+lastLine).Scan(&head.Lines)
	})
	return head, err
}

// lastLine is the last ID in use; SQLite keeps it when records are deleted (sqlite.org/autoinc.html).
const lastLine = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'audit'), 0)"

// VerifyAudit implements [store.Audit].
func (s *Store) VerifyAudit(ctx context.Context, head string) (store.AuditCheck, error) {
	check, _, err := s.Verify(ctx, head, func(t sqlstore.Tx, state *chain.State) (last int64, err error) {
		var start []byte
		err = sqlstore.One(t, []any{&last, &state.Written, &state.Before, &state.Pruned, &start}, "SELECT coalesce(max(id), 0), "+lastLine+`,
			coalesce((SELECT before FROM audit_start), 0), coalesce((SELECT pruned FROM audit_start), 0), (SELECT hash FROM audit_start) FROM audit`)
		copy(state.Start[:], start)
		return last, err
	})
	return check, err
}

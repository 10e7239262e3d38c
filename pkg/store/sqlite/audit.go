package sqlite

import (
	"context"
	"database/sql"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
)

// appendLine adds an audit record.
func (s *Store) appendLine(ctx context.Context, line v1.AuditRecord) error {
	l, err := chain.NewLine(line)
	if err != nil {
		return err
	}
	return s.writeShort(ctx, &shortWrite{line: &l})
}

// addAudit adds records to the chain in the transaction of c.
func addAudit(ctx context.Context, c *sql.Conn, records ...v1.AuditRecord) error {
	lines, err := chain.NewLines(records...)
	if err != nil {
		return err
	}
	return insertAudit(ctx, c, lines)
}

// insertAudit adds prepared records to the chain in the transaction of c.
func insertAudit(ctx context.Context, c *sql.Conn, lines []chain.Line) error {
	head, err := auditHead(ctx, c)
	if err != nil {
		return err
	}
	for _, l := range lines {
		head = head.Next(l.Text)
		r := &l.Record
		res, err := c.ExecContext(ctx, "INSERT INTO audit (time, tool, session, status, principal, record, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
			r.Time.UnixMicro(), r.Tool, r.Session, r.Status, r.Principal, l.Text, head[:])
		if err != nil {
			return err
		}
		if err := trackIntent(ctx, c, r, res); err != nil {
			return err
		}
	}
	return nil
}

// trackIntent updates the table of calls that have no outcome yet.
func trackIntent(ctx context.Context, c *sql.Conn, line *v1.AuditRecord, inserted sql.Result) error {
	switch {
	case chain.Begins(line.Status):
		id, err := inserted.LastInsertId()
		if err != nil {
			return err
		}
		_, err = c.ExecContext(ctx, "INSERT INTO audit_open (call_id, line) VALUES (?, ?)", line.CallID, id)
		return err
	case chain.Ends(line.Status):
		_, err := c.ExecContext(ctx, "DELETE FROM audit_open WHERE call_id = ?1 AND line = (SELECT min(line) FROM audit_open WHERE call_id = ?1)", line.CallID)
		return err
	}
	return nil
}

// auditHead returns the hash of the last record.
func auditHead(ctx context.Context, c *sql.Conn) (head chain.Hash, err error) {
	var stored []byte
	err = c.QueryRowContext(ctx, "SELECT coalesce((SELECT hash FROM audit WHERE hash IS NOT NULL ORDER BY id DESC LIMIT 1), (SELECT hash FROM audit_start), x'')").Scan(&stored)
	copy(head[:], stored)
	return head, err
}

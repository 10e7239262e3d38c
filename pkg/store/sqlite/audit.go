package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
)

// appendLine adds a line.
func (s *Store) appendLine(ctx context.Context, line v1.AuditRecord) error {
	l, err := chain.NewLine(line)
	if err != nil {
		return err
	}
	return s.writeShort(ctx, &shortWrite{line: &l})
}

// addAudit adds lines to the chain in the transaction of c.
func addAudit(ctx context.Context, c *sql.Conn, records ...v1.AuditRecord) error {
	lines, err := chain.NewLines(records...)
	if err != nil {
		return err
	}
	return insertAudit(ctx, c, lines)
}

// insertAudit adds lines to the chain in the transaction of c.
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

// trackIntent keeps the table of calls that have no outcome yet.
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

// auditHead reads the hash of the last line.
func auditHead(ctx context.Context, c *sql.Conn) (head chain.Hash, err error) {
	var stored []byte
	err = c.QueryRowContext(ctx, "SELECT coalesce((SELECT hash FROM audit WHERE hash IS NOT NULL ORDER BY id DESC LIMIT 1), (SELECT hash FROM audit_start), x'')").Scan(&stored)
	copy(head[:], stored)
	return head, err
}

// where returns the filter without its limit as a condition of SQL.
func where(f store.AuditFilter) (string, []any) {
	const namespace = "CASE WHEN json_valid(CAST(record AS TEXT)) THEN json_extract(CAST(record AS TEXT), '$.namespace') END"
	where, args := []string{"id > ?"}, []any{f.After}
	if f.UpTo > 0 {
		where, args = append(where, "id <= ?"), append(args, f.UpTo)
	}
	if !f.Since.IsZero() {
		where, args = append(where, "time >= ?"), append(args, f.Since.UnixMicro())
	}
	for _, m := range []struct{ column, value string }{{"tool", f.Tool}, {"session", f.Session}, {"principal", f.Principal}, {namespace, f.Namespace}} {
		switch {
		case strings.ContainsAny(m.value, "*?"):
			where, args = append(where, m.column+" GLOB ?"), append(args, strings.ReplaceAll(m.value, "[", "[[]"))
		case m.value != "":
			where, args = append(where, m.column+" = ?"), append(args, m.value)
		}
	}
	if f.Status != "" {
		where, args = append(where, "status = ?"), append(args, f.Status)
	}
	if f.Settled {
		where, args = append(where, "(status <> ? OR id IN (SELECT line FROM audit_open))"), append(args, v1.StatusStarted)
	}
	return strings.Join(where, " AND "), args
}

// EachAudit implements [store.Audit].
func (s *Store) EachAudit(ctx context.Context, filter store.AuditFilter, fn func(store.AuditLine) error) error {
	if err := filter.Check(); err != nil {
		return err
	}
	where, args := where(filter)
	var after, last int64
	err := s.read(ctx, func(c *sql.Conn) error {
		if err := c.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM audit").Scan(&last); err != nil || filter.Limit == 0 {
			return err
		}
		return c.QueryRowContext(ctx, "SELECT coalesce(min(id), 1) - 1 FROM (SELECT id FROM audit WHERE "+where+" ORDER BY id DESC LIMIT ?)",
			append(args[:len(args):len(args)], filter.Limit)...).Scan(&after)
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

// auditPage reads the next lines after an id and up to another, in their order.
func (s *Store) auditPage(ctx context.Context, where string, args []any, after, last int64) (page []chain.Row, err error) {
	query := "SELECT id, time, tool, session, status, principal, record, hash FROM audit WHERE " + where + " AND id > ? AND id <= ? ORDER BY id LIMIT ?"
	args = append(args[:len(args):len(args)], after, last, auditPageLines)
	err = s.read(ctx, func(c *sql.Conn) error {
		page = nil
		rows, err := c.QueryContext(ctx, query, args...)
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
		return rows.Err()
	})
	return page, err
}

package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// AuditFilter chooses lines of the audit. The zero value is all of them.
type AuditFilter struct {
	// Since keeps lines of that time and later.
	Since time.Time
	// Tool, Session and Status keep the lines that have them; "" keeps all.
	Tool, Session, Status string
	// Limit is the most lines to return, the newest ones; 0 returns all.
	Limit int
}

// AppendAudit adds a line to the audit. A line without a time gets that of now.
func (s *Store) AppendAudit(ctx context.Context, line v1.AuditRecord) error {
	if line.Time.IsZero() {
		line.Time = time.Now().UTC()
	}
	text, err := compact(line)
	if err != nil {
		return fmt.Errorf("audit: call %q cannot be recorded: %w", line.CallID, err)
	}
	return s.write(ctx, false, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "INSERT INTO audit (time, tool, session, status, record) VALUES (?, ?, ?, ?, ?)",
			line.Time.UnixMicro(), line.Tool, line.Session, line.Status, text)
		return err
	})
}

// ListAudit returns lines of the audit in the order in which they were written,
// the newest last.
func (s *Store) ListAudit(ctx context.Context, filter AuditFilter) ([]v1.AuditRecord, error) {
	if filter.Limit < 0 {
		return nil, fmt.Errorf("audit: limit %d may not be negative", filter.Limit)
	}
	where, args := []string{"true"}, []any(nil)
	if !filter.Since.IsZero() {
		where, args = append(where, "time >= ?"), append(args, filter.Since.UnixMicro())
	}
	for _, f := range []struct{ column, value string }{{"tool", filter.Tool}, {"session", filter.Session}, {"status", filter.Status}} {
		if f.value != "" {
			where, args = append(where, f.column+" = ?"), append(args, f.value)
		}
	}
	query := "SELECT record FROM audit WHERE " + strings.Join(where, " AND ") + " ORDER BY id DESC"
	if filter.Limit > 0 {
		query, args = query+" LIMIT ?", append(args, filter.Limit)
	}
	var lines []v1.AuditRecord
	err := s.read(ctx, func(c *sql.Conn) error {
		lines = nil
		rows, err := c.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var text sql.RawBytes
			if err := rows.Scan(&text); err != nil {
				return err
			}
			var line v1.AuditRecord
			if err := json.Unmarshal(text, &line); err != nil {
				return fmt.Errorf("%w: audit: %w", ErrDamaged, err)
			}
			lines = append(lines, line)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(lines)
	return lines, nil
}

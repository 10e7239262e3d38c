package sqlite

import (
	"context"
	"database/sql"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
)

// AuditHead implements [store.Audit].
func (s *Store) AuditHead(ctx context.Context) (head store.AuditHead, err error) {
	err = s.read(ctx, func(c *sql.Conn) error {
		hash, err := auditHead(ctx, c)
		if err != nil {
			return err
		}
		head.Hash = hash.String()
		head.Lines, err = auditWritten(ctx, c)
		return err
	})
	return head, err
}

// auditWritten is the ID that was given out last; SQLite keeps it when lines are deleted
// (sqlite.org/autoinc.html).
func auditWritten(ctx context.Context, c *sql.Conn) (n int64, err error) {
	err = c.QueryRowContext(ctx, "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'audit'), 0)").Scan(&n)
	return n, err
}

// VerifyAudit implements [store.Audit].
func (s *Store) VerifyAudit(ctx context.Context, head string) (store.AuditCheck, error) {
	v, err := chain.NewVerifier(head)
	if err != nil {
		return store.AuditCheck{}, err
	}
	var last int64
	var state chain.State
	err = s.read(ctx, func(c *sql.Conn) (err error) {
		if state.Written, err = auditWritten(ctx, c); err != nil {
			return err
		}
		var start []byte
		err = c.QueryRowContext(ctx, `SELECT coalesce(max(id), 0), coalesce((SELECT before FROM audit_start), 0), coalesce((SELECT pruned FROM audit_start), 0),
			(SELECT hash FROM audit_start) FROM audit`).Scan(&last, &state.Before, &state.Pruned, &start)
		if err != nil {
			return err
		}
		state.Start = chain.Hash{}
		copy(state.Start[:], start)
		state.Open, err = openIntents(ctx, c)
		return err
	})
	v.Start(state)
	// IDs that nobody gave out may be below 1.
	for after, intact := int64(-1<<63), true; err == nil && intact; {
		var page []chain.Row
		if page, err = s.auditPage(ctx, "true", nil, after, last); len(page) == 0 {
			break
		}
		for i := range page {
			if intact = v.Add(&page[i]); !intact {
				break
			}
			after = page[i].ID
		}
	}
	if err != nil {
		return store.AuditCheck{}, err
	}
	return v.End(), nil
}

// openIntents reads the calls without an outcome, as lists of the audit take them.
func openIntents(ctx context.Context, c *sql.Conn) (map[string][]int64, error) {
	rows, err := c.QueryContext(ctx, "SELECT call_id, line FROM audit_open ORDER BY line")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	open := map[string][]int64{}
	for rows.Next() {
		var call string
		var line int64
		if err := rows.Scan(&call, &line); err != nil {
			return nil, err
		}
		open[call] = append(open[call], line)
	}
	return open, rows.Err()
}

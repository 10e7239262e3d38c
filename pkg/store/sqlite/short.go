package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// shortWrite is a write of a call: an audit record, or counts.
type shortWrite struct {
	line *chain.Line
	// do replaces the write of a record. If it returns a [plan.Refusal], only its own changes are rolled back; any
	// other error applies to all writes of the transaction.
	do      func(ctx context.Context, c *sql.Conn) error
	refused error // why do refused among other writes
}

// writeShort returns when w was written or failed. Writes that arrive while another transaction runs share the next one.
func (s *Store) writeShort(ctx context.Context, w *shortWrite) error {
	if err := s.shorts.Do(ctx, w); err != nil {
		return s.explain(context.WithoutCancel(ctx), err) // the end of ctx may not be why the write failed
	}
	return w.refused
}

// writeTogether writes a batch in one transaction; the caller must hold the gate. No other process can write between
// its read of the end of the chain and its own records.
func (s *Store) writeTogether(ctx context.Context, batch []*shortWrite) error {
	return s.withConn(ctx, func(c *sql.Conn) error {
		return s.transact(ctx, c, "BEGIN IMMEDIATE", func(c *sql.Conn) error {
			var lines []chain.Line
			for _, w := range batch {
				if w.line != nil {
					lines = append(lines, *w.line)
				} else if err := s.among(ctx, c, w, len(batch)); err != nil {
					return err
				}
			}
			if len(lines) == 0 {
				return nil
			}
			return insertAudit(ctx, c, lines)
		})
	})
}

// among executes one of several writes in the transaction of c.
func (s *Store) among(ctx context.Context, c *sql.Conn, w *shortWrite, several int) error {
	if several == 1 {
		return w.do(ctx, c)
	}
	if _, err := c.ExecContext(ctx, "SAVEPOINT one"); err != nil {
		return err
	}
	err := w.do(ctx, c)
	if refused := new(plan.Refusal); errors.As(err, &refused) {
		w.refused = refused.Err
		_, err = c.ExecContext(ctx, "ROLLBACK TO one")
	}
	if err == nil {
		_, err = c.ExecContext(ctx, "RELEASE one")
	}
	return err
}

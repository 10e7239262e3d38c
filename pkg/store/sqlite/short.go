package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"

	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// shortWrite is a write of a call: an audit record, or counts. Writes that arrive while another transaction runs share
// the next one, because the transaction is most of the cost of each.
type shortWrite struct {
	line *chain.Line
	// do replaces the write of a record. If it returns a [plan.Refusal], only its own changes are rolled back; any
	// other error applies to all writes of the transaction.
	do   func(ctx context.Context, c *sql.Conn) error
	done chan struct{} // closed when it was written or failed
	err  error         // set before done is closed
}

// writeShort returns when w was written or failed.
func (s *Store) writeShort(ctx context.Context, w *shortWrite) error {
	w.done = make(chan struct{})
	s.shorts.add(w)
	entered, err := s.enterUnless(ctx, w.done)
	switch {
	case entered:
		// This goroutine now writes all waiting items; w may already be written.
		batch := s.shorts.take()
		err := s.writeTogether(context.WithoutCancel(ctx), batch)
		for _, b := range batch {
			b.err = cmp.Or(err, b.err)
			close(b.done)
		}
		s.leave()
	case err != nil && s.shorts.withdraw(w):
		return err
	}
	<-w.done // another goroutine may be writing it
	return w.err
}

// writeTogether writes a batch in one transaction; the caller must hold the gate. No other process can write between
// its read of the end of the chain and its own records.
func (s *Store) writeTogether(ctx context.Context, batch []*shortWrite) error {
	if len(batch) == 0 {
		return nil
	}
	return s.explain(ctx, s.withConn(ctx, func(c *sql.Conn) error {
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
	}))
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
		w.err = refused.Err
		_, err = c.ExecContext(ctx, "ROLLBACK TO one")
	}
	if err == nil {
		_, err = c.ExecContext(ctx, "RELEASE one")
	}
	return err
}

// shortWrites is the queue for the writer of this process. Its length is limited by the number of concurrent calls.
type shortWrites struct {
	mu      sync.Mutex
	waiting []*shortWrite
}

func (q *shortWrites) add(w *shortWrite) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, w)
}

func (q *shortWrites) take() []*shortWrite {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch := q.waiting
	q.waiting = nil
	return batch
}

// withdraw removes an item that is not being written yet.
func (q *shortWrites) withdraw(w *shortWrite) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

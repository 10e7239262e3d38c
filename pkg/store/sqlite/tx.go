package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"time"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/store"
)

// enter waits until no other goroutine of this process writes; leave ends that. Writers queue here, in order, instead
// of in SQLite, where waiters sleep and retry.
func (s *Store) enter(ctx context.Context) error {
	select {
	case s.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return s.explain(ctx, ctx.Err())
	case <-s.closed:
		return store.ErrClosed
	}
}

func (s *Store) leave() { <-s.gate }

// write runs fn in one immediate transaction, which excludes writers of all processes, and commits it if fn returns
// nil. The changes are on the disk when write returns; see [Store.writeShort] for writes without that guarantee.
func (s *Store) write(ctx context.Context, fn func(c *sql.Conn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.explain(ctx, s.withConn(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, "PRAGMA synchronous=FULL"); err != nil {
			return err
		}
		defer func() {
			// If it fails, the connection stays slow and safe.
			_, _ = c.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous=NORMAL")
		}()
		return s.transact(ctx, c, "BEGIN IMMEDIATE", fn)
	}))
}

// read runs fn on a consistent snapshot of the store. It may run fn again.
func (s *Store) read(ctx context.Context, fn func(c *sql.Conn) error) error {
	return s.explain(ctx, s.withConn(ctx, func(c *sql.Conn) error {
		return s.retry(ctx, func() error { return s.transact(ctx, c, "BEGIN", fn) })
	}))
}

func (s *Store) withConn(ctx context.Context, fn func(c *sql.Conn) error) error {
	var c *sql.Conn
	err := s.retry(ctx, func() (err error) {
		c, err = s.db.Conn(ctx)
		return err
	})
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}

func (s *Store) transact(ctx context.Context, c *sql.Conn, begin string, fn func(c *sql.Conn) error) (err error) {
	// The end of ctx decides between the two outcomes. It must not interrupt the statements that begin and end the
	// transaction, because their result would then be unknown.
	final := context.WithoutCancel(ctx)
	if err := s.retry(ctx, func() error { _, err := c.ExecContext(final, begin); return err }); err != nil {
		return err
	}
	committed := false
	defer func() {
		if committed {
			return
		}
		if _, rerr := c.ExecContext(final, "ROLLBACK"); rerr != nil {
			// SQLite may have rolled back by itself. A connection in an unknown state is not reused; closing it rolls
			// back for certain.
			_ = c.Raw(func(any) error { return driver.ErrBadConn })
		}
	}()
	if err := fn(c); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err = c.ExecContext(final, "COMMIT")
	if committed = err == nil; committed && s.audited.Interval == 0 {
		s.audited.Notify()
	}
	return err
}

// retry repeats f until it finds the store unlocked, ctx ends, or the store was locked for the whole of the busy
// timeout.
func (s *Store) retry(ctx context.Context, f func() error) error {
	start := time.Now()
	for {
		err := f()
		if !isBusy(err) {
			return err
		}
		if waited := time.Since(start); waited > s.busy {
			return fmt.Errorf("%w for %s: try again, or end that process", store.ErrBusy, clip.Duration(waited))
		}
		wait := time.NewTimer(time.Millisecond + rand.N(10*time.Millisecond))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		}
	}
}

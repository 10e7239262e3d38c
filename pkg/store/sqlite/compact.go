package sqlite

import (
	"context"
	"database/sql"

	"toolctl.dev/toolctl/pkg/store"
)

// vacuum gives a bounded number of free pages back in one transaction.
const vacuum = "PRAGMA incremental_vacuum(1024)"

// incremental is the auto_vacuum with which a file can give pages back (sqlite.org/pragma.html#pragma_auto_vacuum).
// A file has it from its beginning, or gets it when all of it is written anew.
const incremental = 2

// PruneAudit implements [store.Audit]. The file gives back what became free, if it can.
func (s *Store) PruneAudit(ctx context.Context, opts store.PruneOptions) (store.AuditPrune, error) {
	p, err := s.Methods.PruneAudit(ctx, opts)
	if err == nil && p.Lines > 0 && !opts.DryRun {
		_ = s.shrink(ctx) // the lines are gone; what stays free is used again, or given back the next time
	}
	return p, err
}

// Compact implements [store.Compacter]. A file that an older toolctl made is written anew, which needs
// room for twice of what is in it.
func (s *Store) Compact(ctx context.Context) error {
	var mode int
	err := s.alone(ctx, func(c *sql.Conn) error { return c.QueryRowContext(ctx, "PRAGMA auto_vacuum").Scan(&mode) })
	if err != nil {
		return err
	}
	if mode == incremental {
		return s.shrink(ctx)
	}
	return s.alone(ctx, func(c *sql.Conn) error {
		for _, q := range []string{"PRAGMA auto_vacuum=INCREMENTAL", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
			if _, err := c.ExecContext(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
}

// shrink gives free pages back to the disk, some at a time.
func (s *Store) shrink(ctx context.Context) error {
	for before := int64(-1); ; {
		var free int64
		err := s.alone(ctx, func(c *sql.Conn) error {
			if _, err := c.ExecContext(ctx, vacuum); err != nil {
				return err
			}
			if err := c.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil || free > 0 && free != before {
				return err
			}
			_, err := c.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)") // with which the file gets shorter
			return err
		})
		if err != nil || free == 0 || free == before { // a file that cannot give any back keeps them
			return err
		}
		before = free
	}
}

// alone runs fn outside of a transaction while no other writer of this process writes, and again while
// another process does.
func (s *Store) alone(ctx context.Context, fn func(c *sql.Conn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.explain(ctx, s.withConn(ctx, func(c *sql.Conn) error {
		return s.retry(ctx, func() error { return fn(c) })
	}))
}

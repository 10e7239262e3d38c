package sqlite

import (
	"context"
	"database/sql"

	"toolctl.dev/toolctl/pkg/store"
)

// vacuum returns a limited number of free pages in one transaction.
const vacuum = "PRAGMA incremental_vacuum(1024)"

// incremental is the auto_vacuum mode in which a file can return pages (sqlite.org/pragma.html#pragma_auto_vacuum). It
// must be set when the file is created, or the whole file must be rewritten.
const incremental = 2

// PruneAudit implements [store.Audit]. It then returns the free space to the disk, if possible.
func (s *Store) PruneAudit(ctx context.Context, opts store.PruneOptions) (store.AuditPrune, error) {
	p, err := s.Methods.PruneAudit(ctx, opts)
	if err == nil && p.Lines > 0 && !opts.DryRun {
		_ = s.shrink(ctx) // the records are removed; free space is reused or returned the next time
	}
	return p, err
}

// Compact implements [store.Compacter]. It rewrites a file of an older version of toolctl, which needs twice the space
// of its contents.
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

// shrink returns free pages to the disk in steps.
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
			_, err := c.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)") // shortens the file
			return err
		})
		if err != nil || free == 0 || free == before { // some files cannot return pages
			return err
		}
		before = free
	}
}

// alone runs fn outside of a transaction while no other goroutine of this process writes, and retries it while another
// process does.
func (s *Store) alone(ctx context.Context, fn func(c *sql.Conn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.explain(ctx, s.withConn(ctx, func(c *sql.Conn) error {
		return s.retry(ctx, func() error { return fn(c) })
	}))
}

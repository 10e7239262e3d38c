package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"time"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
)

// PruneAudit implements [store.Audit].
func (s *Store) PruneAudit(ctx context.Context, opts store.PruneOptions) (p store.AuditPrune, err error) {
	now := time.Now()
	if err := opts.Check(now); err != nil {
		return p, err
	}
	work := func(c *sql.Conn) error {
		p = store.AuditPrune{}
		var first, last int64
		err := c.QueryRowContext(ctx, `SELECT coalesce(min(id), 0), coalesce((SELECT min(id) FROM audit WHERE time >= ?), max(id) + 1, 0) - 1, count(*) FROM audit`,
			opts.Before.UnixMicro()).Scan(&first, &last, &p.Kept)
		if err != nil {
			return err
		}
		p.Start = first
		if last < first || p.Kept == 0 {
			return nil
		}
		var hash []byte
		if err := c.QueryRowContext(ctx, "SELECT hash FROM audit WHERE id = ?", last).Scan(&hash); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		p.Lines, p.Kept, p.Start = last-first+1, p.Kept-(last-first+1), last+1
		if hash != nil {
			p.Hash = hex.EncodeToString(hash)
		}
		if opts.DryRun {
			return nil
		}
		for _, q := range []struct {
			query string
			args  []any
		}{
			{"DELETE FROM audit WHERE id <= ?", []any{last}},
			{"DELETE FROM audit_open WHERE line <= ?", []any{last}},
			{"UPDATE audit_start SET pruned = ?, hash = ?", []any{last, hash}},
		} {
			if _, err := c.ExecContext(ctx, q.query, q.args...); err != nil {
				return err
			}
		}
		return addAudit(ctx, c, chain.Prune(opts, now, first, p))
	}
	if opts.DryRun {
		return p, s.read(ctx, work)
	}
	return p, s.write(ctx, work)
}

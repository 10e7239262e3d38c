package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// PruneAudit removes the lines at the beginning of the audit that are before a time, and
// adds a line that says so. [Store.VerifyAudit] proves the chain from its new start on.
func (s *Store) PruneAudit(ctx context.Context, opts store.PruneOptions) (p store.AuditPrune, err error) {
	now := time.Now()
	if !opts.Before.Before(now) {
		return p, fmt.Errorf("audit: prune before %s: expected a time in the past", opts.Before.UTC().Format(time.RFC3339))
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
		return addAudit(ctx, c, v1.AuditRecord{Time: now.UTC(), CallID: rand.Text(), Principal: opts.By, Status: v1.StatusChanged, Change: &v1.AuditChange{
			Command: "audit prune", Action: string(store.Pruned), Kind: kindAudit, From: first, To: last + 1, Before: opts.Before.UTC(), Hash: p.Hash,
		}})
	}
	if opts.DryRun {
		return p, s.read(ctx, work)
	}
	return p, s.write(ctx, true, work)
}

// kindAudit is the kind of the change that a prune is.
const kindAudit = "Audit"

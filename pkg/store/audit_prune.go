package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// PruneOptions say what [Store.PruneAudit] removes.
type PruneOptions struct {
	// Before is a time in the past; lines before it go, up to the first that is not before it.
	Before time.Time
	// By is who prunes, for the audit.
	By string
	// DryRun removes nothing.
	DryRun bool
}

// AuditPrune is what [Store.PruneAudit] removed.
type AuditPrune struct {
	// Lines is how many lines were removed, and Kept how many are left, without the one that
	// says so.
	Lines int64 `json:"lines"`
	Kept  int64 `json:"kept"`
	// Start is the ID of the first line that is left.
	Start int64 `json:"start"`
	// Hash is that of the last line that was removed, from which the chain goes on; empty
	// when none was, or when it was older than the chain.
	Hash string `json:"hash,omitempty"`
}

// PruneAudit removes the lines at the beginning of the audit that are before a time, and
// adds a line that says so. [Store.VerifyAudit] proves the chain from its new start on.
func (s *Store) PruneAudit(ctx context.Context, opts PruneOptions) (p AuditPrune, err error) {
	now := time.Now()
	if !opts.Before.Before(now) {
		return p, fmt.Errorf("audit: prune before %s: expected a time in the past", opts.Before.UTC().Format(time.RFC3339))
	}
	work := func(c *sql.Conn) error {
		p = AuditPrune{}
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
			Command: "audit prune", Action: string(Pruned), Kind: kindAudit, From: first, To: last + 1, Before: opts.Before.UTC(), Hash: p.Hash,
		}})
	}
	if opts.DryRun {
		return p, s.read(ctx, work)
	}
	return p, s.write(ctx, true, work)
}

// kindAudit is the kind of the change that a prune is.
const kindAudit = "Audit"

package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
)

// VerifyAudit implements [store.Audit].
func (s *Store) VerifyAudit(ctx context.Context, head string) (store.AuditCheck, error) {
	var end []byte
	check, last, err := s.Verify(ctx, head, func(tx sqlstore.Tx, state *chain.State) (last int64, err error) {
		var start []byte
		err = sqlstore.One(tx, []any{&state.Written, &end, &state.Pruned, &start, &last},
			"SELECT seq, hash, pruned, start, (SELECT coalesce(max(seq), 0) FROM toolctl_audit WHERE chain = $1) FROM toolctl_heads WHERE chain = $1", auditChain)
		copy(state.Start[:], start)
		return last, err
	})
	if kept := hex.EncodeToString(end); err == nil && check.Broken == nil && kept != check.Head {
		check.Broken = &store.AuditBreak{Line: last, Message: "the head that is kept beside the lines has another hash: it was changed"}
	}
	return check, err
}

// PruneAudit implements [store.Audit].
func (s *Store) PruneAudit(ctx context.Context, opts store.PruneOptions) (p store.AuditPrune, err error) {
	var micros int64
	if err := s.one(ctx, "SELECT toolctl_now()", nil, &micros); err != nil {
		return p, s.explain(ctx, err)
	}
	now := time.UnixMicro(micros)
	if err := opts.Check(now); err != nil {
		return p, err
	}
	work := func(tx pgx.Tx) error {
		p = store.AuditPrune{}
		if !opts.DryRun { // whoever writes holds this row
			if _, err := tx.Exec(ctx, "SELECT 1 FROM toolctl_heads WHERE chain = $1 FOR UPDATE", auditChain); err != nil {
				return err
			}
		}
		var first, last int64
		err := tx.QueryRow(ctx, `SELECT coalesce(min(seq), 0), coalesce((SELECT min(seq) FROM toolctl_audit WHERE chain = $1 AND time >= $2), max(seq) + 1, 0) - 1, count(*)
			FROM toolctl_audit WHERE chain = $1`, auditChain, opts.Before.UnixMicro()).Scan(&first, &last, &p.Kept)
		if err != nil {
			return err
		}
		p.Start = first
		if last < first || p.Kept == 0 {
			return nil
		}
		var hash []byte
		if err := tx.QueryRow(ctx, "SELECT hash FROM toolctl_audit WHERE chain = $1 AND seq = $2", auditChain, last).Scan(&hash); err != nil {
			return fmt.Errorf("%w: audit: line %d: %w", store.ErrDamaged, last, err)
		}
		p.Lines, p.Kept, p.Start, p.Hash = last-first+1, p.Kept-(last-first+1), last+1, hex.EncodeToString(hash)
		if opts.DryRun {
			return nil
		}
		const gone = `WITH gone AS (DELETE FROM toolctl_audit WHERE chain = $1 AND seq <= $2 RETURNING octet_length(record) AS n)
			UPDATE toolctl_heads SET pruned = $2, start = $3, bytes = bytes - (SELECT coalesce(sum(n), 0) FROM gone) WHERE chain = $1`
		if _, err := tx.Exec(ctx, gone, auditChain, last, hash); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM toolctl_audit_open WHERE line <= $1", last); err != nil {
			return err
		}
		return s.addAudit(ctx, tx, chain.Prune(opts, now, first, p))
	}
	if opts.DryRun {
		return p, s.read(ctx, work)
	}
	return p, s.write(ctx, work)
}

package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
)

// VerifyAudit implements [store.Audit].
func (s *Store) VerifyAudit(ctx context.Context, head string) (store.AuditCheck, error) {
	v, err := chain.NewVerifier(head)
	if err != nil {
		return store.AuditCheck{}, err
	}
	var last int64
	var state chain.State
	var end []byte
	err = s.read(ctx, func(tx pgx.Tx) error {
		var start []byte
		err := tx.QueryRow(ctx, "SELECT seq, hash, pruned, start, (SELECT coalesce(max(seq), 0) FROM toolctl_audit WHERE chain = $1) FROM toolctl_heads WHERE chain = $1", auditChain).
			Scan(&state.Written, &end, &state.Pruned, &start, &last)
		if err != nil {
			return err
		}
		copy(state.Start[:], start)
		state.Open, err = openIntents(ctx, tx)
		return err
	})
	v.Start(state)
	// Numbers that nobody gave out may be below 1.
	for after, intact := int64(-1<<63), true; err == nil && intact; {
		var page []chain.Row
		if page, err = s.auditPage(ctx, "chain = $1", []any{auditChain}, after, last); len(page) == 0 {
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
	check := v.End()
	if kept := hex.EncodeToString(end); check.Broken == nil && kept != check.Head {
		check.Broken = &store.AuditBreak{Line: last, Message: "the head that is kept beside the lines has another hash: it was changed"}
	}
	return check, nil
}

// openIntents reads the calls without an outcome, as lists of the audit take them.
func openIntents(ctx context.Context, tx pgx.Tx) (map[string][]int64, error) {
	rows, err := tx.Query(ctx, "SELECT call_id, line FROM toolctl_audit_open ORDER BY line")
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

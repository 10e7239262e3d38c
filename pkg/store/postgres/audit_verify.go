package postgres

import (
	"context"
	"encoding/hex"

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
		check.Broken = &store.AuditBreak{Line: last, Message: "the stored head has a different hash: it was changed"}
	}
	return check, err
}

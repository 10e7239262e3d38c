package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// HoldLeases implements [store.Leases].
func (s *Store) HoldLeases(ctx context.Context, holder string, leases []store.Lease, lasts time.Duration) (all []store.Lease, now time.Time, err error) {
	// All processes lock rows in the same order, to avoid deadlocks.
	leases = slices.SortedFunc(slices.Values(leases), func(a, b store.Lease) int { return strings.Compare(a.Name, b.Name) })
	names, values := make([]string, len(leases)), make([]string, len(leases))
	for i, l := range leases {
		names[i], values[i] = text(l.Name), text(l.Value)
	}
	within, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	if len(leases) > 0 { // two statements: a statement does not see what its own functions changed
		err = s.within(within, "SELECT toolctl_hold($1, $2, $3, $4, $5)", []any{text(holder), names, values, micros(lasts), store.MaxLeases}, new(int64))
		if err != nil {
			return nil, time.Time{}, s.explain(ctx, err)
		}
		s.sweepLeases(ctx)
	}
	var at int64
	var found struct {
		names, holders, values []string
		expires                []int64
	}
	err = s.within(within, `SELECT n.now, array_remove(array_agg(l.name ORDER BY l.name), NULL), array_remove(array_agg(l.holder ORDER BY l.name), NULL),
		array_remove(array_agg(l.value ORDER BY l.name), NULL), array_remove(array_agg(l.expires ORDER BY l.name), NULL)
		FROM (SELECT toolctl_now() AS now OFFSET 0) n LEFT JOIN toolctl_leases l ON l.expires > n.now GROUP BY n.now`, nil,
		&at, &found.names, &found.holders, &found.values, &found.expires)
	if err != nil {
		return nil, time.Time{}, s.explain(ctx, err)
	}
	for i, name := range found.names {
		all = append(all, store.Lease{Name: name, Holder: found.holders[i], Value: found.values[i], Expires: timeOf(found.expires[i])})
	}
	return all, timeOf(at), nil
}

// sweepLeases removes leases that expired a while ago. It skips rows that others have locked.
func (s *Store) sweepLeases(ctx context.Context) {
	now, last := time.Now().UnixNano(), s.sweptLeases.Load()
	if now-last < int64(time.Minute) || !s.sweptLeases.CompareAndSwap(last, now) {
		return
	}
	var n int64
	_ = s.one(ctx, `WITH gone AS (DELETE FROM toolctl_leases WHERE name IN
		(SELECT name FROM toolctl_leases WHERE expires <= toolctl_now() LIMIT 10000 FOR UPDATE SKIP LOCKED) RETURNING 1) SELECT count(*) FROM gone`, nil, &n)
}

// ReturnLeases implements [store.Leases].
func (s *Store) ReturnLeases(ctx context.Context, holder string, names ...string) error {
	var n int64
	for i := range names {
		names[i] = text(names[i])
	}
	return s.explain(ctx, s.within(ctx, `WITH gone AS (DELETE FROM toolctl_leases WHERE holder = $1 AND (cardinality($2::text[]) = 0 OR name = ANY($2)) RETURNING 1)
		SELECT count(*) FROM gone`, []any{text(holder), append([]string{}, names...)}, &n))
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// sweeper says when to drop expired counters: at the first chance, since many
// processes live for one call, and at every 64th then.
type sweeper struct{ n atomic.Int64 }

func (s *sweeper) due() bool { return s.n.Add(1)%64 == 1 }

// errFull ends the transaction of a reservation that a limit refuses.
var errFull = errors.New("a limit is reached")

// Reserve adds one to every counter, or to none when one of them has reached its
// limit. It returns the counts before, in the order given, and full, the index of
// the first counter whose limit is reached, or -1. A negative limit only counts.
// It is exact over all goroutines and processes that use the store. An expired
// count starts again at 0.
func (s *Store) Reserve(ctx context.Context, counters []v1.Counter) (used []int64, full int, err error) {
	if len(counters) == 0 {
		return nil, -1, nil
	}
	err = s.write(ctx, false, func(c *sql.Conn) error {
		used, full = make([]int64, len(counters)), -1
		now := time.Now().UnixMicro()
		if s.sweep.due() {
			// The number is bounded so that no call waits for a great cleaning.
			_, err := c.ExecContext(ctx, "DELETE FROM counters WHERE key IN (SELECT key FROM counters WHERE expires <= ? LIMIT 1000)", now)
			if err != nil {
				return err
			}
		}
		for i, counter := range counters {
			err := c.QueryRowContext(ctx, `INSERT INTO counters (key, used, expires) VALUES (?1, 1, ?2)
				ON CONFLICT (key) DO UPDATE SET expires = excluded.expires,
					used = CASE WHEN counters.expires <= ?3 THEN 1 ELSE counters.used + 1 END
				RETURNING used - 1`, counter.Key, expiry(counter), now).Scan(&used[i])
			if err != nil {
				return err
			}
			if full < 0 && counter.Limit >= 0 && used[i] >= counter.Limit {
				full = i
			}
		}
		if full >= 0 {
			return refuse(errFull)
		}
		return nil
	})
	if errors.Is(err, errFull) {
		return used, full, nil
	}
	if err != nil {
		return nil, -1, err
	}
	return used, full, nil
}

// expiry is the time as the table holds it, nil for never.
func expiry(c v1.Counter) any {
	if c.Expires.IsZero() {
		return nil
	}
	return c.Expires.UnixMicro()
}

// Release takes back one from every counter, after a reserved call that never
// ran. No count falls below 0.
func (s *Store) Release(ctx context.Context, counters []v1.Counter) error {
	if len(counters) == 0 {
		return nil
	}
	return s.write(ctx, false, func(c *sql.Conn) error {
		for _, counter := range counters {
			if _, err := c.ExecContext(ctx, "UPDATE counters SET used = used - 1 WHERE key = ? AND used > 0", counter.Key); err != nil {
				return err
			}
		}
		return nil
	})
}

// Read returns the counts, in the order given; a counter that was never reserved
// or has expired is 0.
func (s *Store) Read(ctx context.Context, counters []v1.Counter) (used []int64, err error) {
	if len(counters) == 0 {
		return nil, nil
	}
	now := time.Now().UnixMicro()
	err = s.read(ctx, func(c *sql.Conn) error {
		used = make([]int64, len(counters))
		for i, counter := range counters {
			err := c.QueryRowContext(ctx, "SELECT used FROM counters WHERE key = ? AND (expires IS NULL OR expires > ?)", counter.Key, now).Scan(&used[i])
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return used, nil
}

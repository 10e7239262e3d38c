package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// sweeper decides when to drop expired counters: on the first write, because many processes live for one call, and then
// on every 64th.
type sweeper struct{ n atomic.Int64 }

func (s *sweeper) due() bool { return s.n.Add(1)%64 == 1 }

// errFull rolls a reservation back when a limit is reached.
var errFull = errors.New("a limit is reached")

// Reserve implements [store.Counters].
func (s *Store) Reserve(ctx context.Context, counters []v1.Counter) (counts []v1.Count, full int, err error) {
	if len(counters) == 0 {
		return nil, -1, nil
	}
	err = s.writeShort(ctx, &shortWrite{do: func(ctx context.Context, c *sql.Conn) (err error) {
		counts, full, err = s.reserve(ctx, c, counters)
		return err
	}})
	if errors.Is(err, errFull) {
		return counts, full, nil
	}
	if err != nil {
		return nil, -1, err
	}
	return counts, full, nil
}

// reserve is Reserve in the transaction of c.
func (s *Store) reserve(ctx context.Context, c *sql.Conn, counters []v1.Counter) (counts []v1.Count, full int, err error) {
	counts, full = make([]v1.Count, len(counters)), -1
	now := time.Now()
	if s.sweep.due() {
		// The number is limited, so that no call waits for a large cleanup.
		_, err := c.ExecContext(ctx, "DELETE FROM counters WHERE key IN (SELECT key FROM counters WHERE expires <= ? LIMIT 1000)", now.UnixMicro())
		if err != nil {
			return nil, -1, err
		}
	}
	for i, counter := range counters {
		counts[i].Ends = counter.End(now)
		err := c.QueryRowContext(ctx, `INSERT INTO counters (key, used, expires) VALUES (?1, 1, ?2)
			ON CONFLICT (key) DO UPDATE SET expires = excluded.expires,
				used = CASE WHEN counters.expires <= ?3 THEN 1 ELSE counters.used + 1 END
			RETURNING used - 1`, counter.Key, micros(counter.Expiry(now)), now.UnixMicro()).Scan(&counts[i].Used)
		if err != nil {
			return nil, -1, err
		}
		if full < 0 && counter.Limit >= 0 && counts[i].Used >= counter.Limit {
			full = i
		}
	}
	if full >= 0 {
		return counts, full, plan.Refuse(errFull)
	}
	return counts, full, nil
}

// micros converts a time to a column value; the zero time is nil.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// Release implements [store.Counters].
func (s *Store) Release(ctx context.Context, counters []v1.Counter) error {
	if len(counters) == 0 {
		return nil
	}
	return s.writeShort(ctx, &shortWrite{do: func(ctx context.Context, c *sql.Conn) error {
		for _, counter := range counters {
			_, err := c.ExecContext(ctx, "UPDATE counters SET used = used - 1 WHERE key = ?1 AND used > 0 AND (?2 IS NULL OR expires = ?2)", counter.Key, micros(counter.Ends))
			if err != nil {
				return err
			}
		}
		return nil
	}})
}

// Read implements [store.Counters].
func (s *Store) Read(ctx context.Context, counters []v1.Counter) (counts []v1.Count, err error) {
	if len(counters) == 0 {
		return nil, nil
	}
	now := time.Now()
	err = s.read(ctx, func(c *sql.Conn) error {
		counts = make([]v1.Count, len(counters))
		for i, counter := range counters {
			counts[i].Ends = counter.End(now)
			err := c.QueryRowContext(ctx, "SELECT used FROM counters WHERE key = ? AND (expires IS NULL OR expires > ?)", counter.Key, now.UnixMicro()).Scan(&counts[i].Used)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// reservation is the counters of one call.
type reservation struct {
	counters []v1.Counter
	counts   []v1.Count
	full     int
}

// Reserve implements [store.Counters].
func (s *Store) Reserve(ctx context.Context, counters []v1.Counter) (counts []v1.Count, full int, err error) {
	if len(counters) == 0 {
		return nil, -1, nil
	}
	r := &reservation{counters: counters, counts: make([]v1.Count, len(counters)), full: -1}
	if err := s.reserving.Do(ctx, r); err != nil {
		return nil, -1, s.explain(ctx, err)
	}
	return r.counts, r.full, nil
}

// reserveAll reserves the counters of many calls in one statement.
func (s *Store) reserveAll(ctx context.Context, calls []*reservation) error {
	var keys []string
	for _, r := range calls {
		for _, c := range r.counters {
			keys = append(keys, keyOf(c))
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	var call, place []int32
	var limit, window, idle []int64
	for i, r := range calls {
		for _, c := range r.counters {
			at, _ := slices.BinarySearch(keys, keyOf(c))
			call, place = append(call, int32(i)), append(place, int32(at+1))
			limit, window, idle = append(limit, c.Limit), append(window, micros(c.Window)), append(idle, micros(c.Idle))
		}
	}
	var used, ends []int64
	var full []int32
	err := s.one(ctx, "SELECT used, ends, at_limit FROM toolctl_reserve($1, $2, $3, $4, $5, $6)", []any{keys, call, place, limit, window, idle}, &used, &ends, &full)
	if err != nil {
		return err
	}
	first := 0
	for _, r := range calls {
		for i := range r.counters {
			r.counts[i] = v1.Count{Used: used[first+i], Ends: timeOf(ends[first+i])}
		}
		if at := int(full[first]); at > 0 {
			r.full = at - 1 - first
		}
		first += len(r.counters)
	}
	s.sweep(ctx)
	return nil
}

// sweep removes expired counters, on the first call and then once a minute. It skips rows that others have locked, so
// that it never waits, and ignores errors, because the next sweep tries again.
func (s *Store) sweep(ctx context.Context) {
	now, last := time.Now().UnixNano(), s.swept.Load()
	if now-last < int64(time.Minute) || !s.swept.CompareAndSwap(last, now) {
		return
	}
	var n int64
	_ = s.one(ctx, `WITH gone AS (DELETE FROM toolctl_counters WHERE key IN
		(SELECT key FROM toolctl_counters WHERE expires <= toolctl_now() LIMIT 10000 FOR UPDATE SKIP LOCKED) RETURNING 1) SELECT count(*) FROM gone`, nil, &n)
}

// Release implements [store.Counters].
func (s *Store) Release(ctx context.Context, counters []v1.Counter) error {
	if len(counters) == 0 {
		return nil
	}
	return s.explain(ctx, s.releasing.Do(ctx, counters))
}

func (s *Store) releaseAll(ctx context.Context, calls [][]v1.Counter) error {
	type window struct {
		key  string
		ends int64
	}
	amounts := map[window]int64{}
	var windows []window
	for _, counters := range calls {
		for _, c := range counters {
			w := window{keyOf(c), 0}
			if !c.Ends.IsZero() {
				w.ends = c.Ends.UnixMicro()
			}
			if amounts[w]++; amounts[w] == 1 {
				windows = append(windows, w)
			}
		}
	}
	slices.SortFunc(windows, func(a, b window) int { return strings.Compare(a.key, b.key) })
	var keys []string
	var ends, amount []int64
	for _, w := range windows {
		keys, ends, amount = append(keys, w.key), append(ends, w.ends), append(amount, amounts[w])
	}
	return s.one(ctx, "SELECT true FROM toolctl_release($1, $2, $3)", []any{keys, ends, amount}, new(bool))
}

// Read implements [store.Counters].
func (s *Store) Read(ctx context.Context, counters []v1.Counter) ([]v1.Count, error) {
	if len(counters) == 0 {
		return nil, nil
	}
	keys := make([]string, len(counters))
	for i, c := range counters {
		keys[i] = keyOf(c)
	}
	var now int64
	var used []int64
	err := s.look(ctx, `SELECT n.now, array_agg(coalesce(c.used, 0) ORDER BY k.place) FROM (SELECT toolctl_now() AS now OFFSET 0) n
		CROSS JOIN unnest($1::text[]) WITH ORDINALITY AS k (key, place)
		LEFT JOIN toolctl_counters c ON c.key = k.key AND (c.expires IS NULL OR c.expires > n.now) GROUP BY n.now`, []any{keys}, &now, &used)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	counts := make([]v1.Count, len(counters))
	for i, c := range counters {
		counts[i] = v1.Count{Used: used[i], Ends: c.End(timeOf(now))}
	}
	return counts, nil
}

// micros converts a duration to microseconds, at least 1.
func micros(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return max(d.Microseconds(), 1)
}

// timeOf converts a column to a time; 0 is the zero time.
func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// maxKey is the maximum length of a key in a column, in bytes. A longer key is cut and gets a hash.
const maxKey = 512

// keyOf returns the key of a counter for its column, because an index does not accept long keys.
func keyOf(c v1.Counter) string {
	key := text(c.Key)
	if len(key) > maxKey {
		sum := sha256.Sum256([]byte(key))
		key = key[:maxKey] + "…" + hex.EncodeToString(sum[:])
		key = text(key) // the cut may be within a character
	}
	return key
}

// text returns a text that PostgreSQL accepts: UTF-8 without NUL.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

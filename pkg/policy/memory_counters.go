package policy

import (
	"context"
	"hash/maphash"
	"math/bits"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

const (
	// shardCount bounds how many goroutines can count at once. A set of shards
	// fits in one uint64.
	shardCount = 64
	// shardHalf is how many counts a shard's younger half holds, so about
	// 262,000 counts in 128 halves, or 50 MB, at most.
	shardHalf = 2048
)

// MemoryCounters are [Counters] in the memory of one process.
//
// Their size is bounded: they forget the counts of calendar spans that are over, and the
// count of a turn or a session once some 130,000 counts or more were begun since a call
// last asked for it. A refused call begins no count, and it too keeps the counts it asks
// for from being forgotten.
type MemoryCounters struct {
	now    func() time.Time
	seed   maphash.Seed
	shards [shardCount]shard
}

// NewMemoryCounters makes counters that go by a clock; nil means time.Now.
func NewMemoryCounters(now func() time.Time) *MemoryCounters {
	if now == nil {
		now = time.Now
	}
	m := &MemoryCounters{now: now, seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i] = shard{young: map[string]*tally{}, most: shardHalf}
	}
	return m
}

// Reserve implements [Counters]; it never fails.
func (m *MemoryCounters) Reserve(_ context.Context, all []v1.Counter) (counts []v1.Count, full int, err error) {
	counts, full = make([]v1.Count, len(all)), -1 // made before the locks are held
	now := m.now()
	defer m.unlock(m.lock(all))
	m.read(all, counts, now)
	for i, c := range all {
		n := counts[i].Used
		for j := range i {
			if all[j].Key == c.Key {
				n++ // it is added to twice
			}
		}
		if counts[i].Used = n; c.Limit >= 0 && n >= c.Limit && full < 0 {
			full = i
		}
	}
	if full >= 0 {
		return counts, full, nil
	}
	for _, c := range all {
		m.shard(c.Key).add(c, now)
	}
	return counts, full, nil
}

// Release implements [Counters]; it never fails.
func (m *MemoryCounters) Release(_ context.Context, all []v1.Counter) error {
	defer m.unlock(m.lock(all))
	for _, c := range all {
		m.shard(c.Key).sub(c)
	}
	return nil
}

// Read implements [Counters]; it never fails.
func (m *MemoryCounters) Read(_ context.Context, all []v1.Counter) ([]v1.Count, error) {
	counts := make([]v1.Count, len(all))
	now := m.now()
	defer m.unlock(m.lock(all))
	m.read(all, counts, now)
	return counts, nil
}

func (m *MemoryCounters) read(all []v1.Counter, counts []v1.Count, now time.Time) {
	for i, c := range all {
		counts[i].Ends = c.End(now)
		if t := m.shard(c.Key).find(c.Key, now); t != nil {
			counts[i].Used = t.n
		}
	}
}

func (m *MemoryCounters) index(key string) uint64 { return maphash.String(m.seed, key) % shardCount }

func (m *MemoryCounters) shard(key string) *shard { return &m.shards[m.index(key)] }

// lock locks the shards of the counters, always in the same order, so that two
// callers cannot wait for each other.
func (m *MemoryCounters) lock(all []v1.Counter) (set uint64) {
	for _, c := range all {
		set |= 1 << m.index(c.Key)
	}
	for s := set; s != 0; s &= s - 1 {
		m.shards[bits.TrailingZeros64(s)].mu.Lock()
	}
	return set
}

func (m *MemoryCounters) unlock(set uint64) {
	for s := set; s != 0; s &= s - 1 {
		m.shards[bits.TrailingZeros64(s)].mu.Unlock()
	}
}

// shard is a part of the counts. Counts that are looked at are, or become, young;
// when the young are many they become the old, and the old ones are dropped.
type shard struct {
	mu         sync.Mutex
	young, old map[string]*tally
	most       int      // how many young ones there may be
	_          [32]byte // two shards do not share a cache line of 64 bytes
}

// tally is one count; expires is zero for one that is kept.
type tally struct {
	n       int64
	expires time.Time
	lasting bool // it is not of a session or a turn, which may be forgotten
}

// find returns nil for a count that is not there, or is over.
func (s *shard) find(key string, now time.Time) *tally {
	t, ok := s.young[key]
	if !ok {
		if t, ok = s.old[key]; !ok {
			return nil
		}
		delete(s.old, key)
		s.put(key, t, now)
	}
	if !t.expires.IsZero() && !t.expires.After(now) {
		delete(s.young, key)
		return nil
	}
	return t
}

func (s *shard) put(key string, t *tally, now time.Time) {
	if len(s.young) >= s.most {
		s.age(now)
	}
	s.young[key] = t
}

// age drops the old and makes the young old. Counts that all sessions share stay until they
// are over.
func (s *shard) age(now time.Time) {
	lasting := map[string]*tally{}
	for key, t := range s.old {
		if t.lasting && (t.expires.IsZero() || t.expires.After(now)) {
			lasting[key] = t
		}
	}
	s.young, s.old = lasting, s.young
	s.most = shardHalf + 2*len(lasting)
}

func (s *shard) add(c v1.Counter, now time.Time) {
	t := s.find(c.Key, now)
	if t == nil {
		t = &tally{lasting: c.Window > 0 || c.Idle == 0}
		s.put(c.Key, t, now)
	}
	t.n, t.expires = t.n+1, c.Expiry(now)
}

func (s *shard) sub(c v1.Counter) {
	t := s.young[c.Key]
	if t == nil {
		t = s.old[c.Key]
	}
	if t == nil || !c.Ends.IsZero() && !c.Ends.Equal(t.expires) {
		return
	}
	if t.n--; t.n <= 0 {
		delete(s.young, c.Key)
		delete(s.old, c.Key)
	}
}

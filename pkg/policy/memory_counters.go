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
	// shardCount limits how many goroutines can count at once. A set of shards fits in one uint64.
	shardCount = 64
	// shardHalf is the maximum number of counts in a shard's young generation. The 128 generations hold at most about
	// 262,000 counts, or 50 MB.
	shardHalf = 2048
)

// MemoryCounters are [Counters] in the memory of one process.
//
// Their size is bounded. They drop the counts of calendar spans that have ended. They also drop the count of a turn or
// a session if about 130,000 or more counts have been created since the last call that used it. A refused call creates
// no count, but it does keep the counts that it reads.
type MemoryCounters struct {
	now    func() time.Time
	seed   maphash.Seed
	shards [shardCount]shard
}

// NewMemoryCounters returns counters that use the clock now; nil means time.Now.
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

// Reserve implements [Counters]. It never fails.
func (m *MemoryCounters) Reserve(_ context.Context, all []v1.Counter) (counts []v1.Count, full int, err error) {
	counts, full = make([]v1.Count, len(all)), -1 // allocated before the locks are held
	now := m.now()
	defer m.unlock(m.lock(all))
	m.read(all, counts, now)
	for i, c := range all {
		if c.Limit >= 0 && counts[i].Used >= c.Limit && full < 0 {
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

// Release implements [Counters]. It never fails.
func (m *MemoryCounters) Release(_ context.Context, all []v1.Counter) error {
	defer m.unlock(m.lock(all))
	for _, c := range all {
		m.shard(c.Key).sub(c)
	}
	return nil
}

// Read implements [Counters]. It never fails.
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

// shard is a part of the counts, in two generations. New counts, and counts that are read, go to the young generation.
// When it is full, it becomes the old generation, and the previous old generation is dropped.
type shard struct {
	mu         sync.Mutex
	young, old map[string]*tally
	most       int      // maximum size of young
	_          [32]byte // keeps two shards out of the same cache line of 64 bytes
}

// tally is one count. A zero expires means that the count does not expire.
type tally struct {
	n       int64
	expires time.Time
	lasting bool // the count is not one of a session or a turn, so age must not drop it
}

// find returns the count for a key; nil if the count does not exist or has expired.
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

// age drops the old generation, and makes the young generation the old one. Counts that all sessions share stay until
// they expire.
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

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
	// fits one uint64.
	shardCount = 64
	// shardHalf is how many counts a shard's younger half holds, so about
	// 262,000 counts in 128 halves, or 50 MB, at most.
	shardHalf = 2048
)

// Memory is [Counters] in memory; its zero value is not ready, see [NewMemory].
//
// Its size is bounded: it forgets the counts of calendar spans that are over,
// and the count of a turn or a session once some 130,000 counts or more were
// begun since a call last asked for it. A refused call begins no count, and it
// too keeps the counts it asks for from being forgotten.
type Memory struct {
	seed   maphash.Seed
	shards [shardCount]shard
}

var _ Counters = (*Memory)(nil)

// NewMemory returns counters that all stand at 0.
func NewMemory() *Memory {
	m := &Memory{seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i] = shard{young: map[string]*tally{}, most: shardHalf}
	}
	return m
}

// Reserve implements [Counters]; it never fails.
func (m *Memory) Reserve(_ context.Context, counters []v1.Counter) (used []int64, full int, err error) {
	used = make([]int64, len(counters)) // made before the locks are held
	defer m.unlock(m.lock(counters))
	m.read(counters, used)
	if full = firstFull(counters, used); full >= 0 {
		return used, full, nil
	}
	for _, c := range counters {
		m.shard(c.Key).add(c)
	}
	return used, full, nil
}

// Release implements [Counters]; it never fails.
func (m *Memory) Release(_ context.Context, counters []v1.Counter) error {
	defer m.unlock(m.lock(counters))
	for _, c := range counters {
		m.shard(c.Key).sub(c.Key)
	}
	return nil
}

// Read implements [Counters]; it never fails.
func (m *Memory) Read(_ context.Context, counters []v1.Counter) ([]int64, error) {
	used := make([]int64, len(counters))
	defer m.unlock(m.lock(counters))
	m.read(counters, used)
	return used, nil
}

func (m *Memory) read(counters []v1.Counter, used []int64) {
	for i, c := range counters {
		if t := m.shard(c.Key).find(c.Key); t != nil {
			used[i] = t.n
		}
	}
}

func (m *Memory) index(key string) uint64 { return maphash.String(m.seed, key) % shardCount }

func (m *Memory) shard(key string) *shard { return &m.shards[m.index(key)] }

// lock locks the shards of the counters, always in the same order, so that two
// callers cannot wait for each other.
func (m *Memory) lock(counters []v1.Counter) (set uint64) {
	for _, c := range counters {
		set |= 1 << m.index(c.Key)
	}
	for s := set; s != 0; s &= s - 1 {
		m.shards[bits.TrailingZeros64(s)].mu.Lock()
	}
	return set
}

func (m *Memory) unlock(set uint64) {
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

// tally is one count; expires is zero for one of a session.
type tally struct {
	n       int64
	expires time.Time
}

func (s *shard) find(key string) *tally {
	if t, ok := s.young[key]; ok {
		return t
	}
	t, ok := s.old[key]
	if !ok {
		return nil
	}
	delete(s.old, key)
	s.put(key, t)
	return t
}

func (s *shard) put(key string, t *tally) {
	if len(s.young) >= s.most {
		s.age()
	}
	s.young[key] = t
}

// age drops the old and makes the young old. Counts of calendar spans are shared
// by all sessions, so they stay until they are over.
func (s *shard) age() {
	now := time.Now()
	lasting := map[string]*tally{}
	for key, t := range s.old {
		if t.expires.After(now) {
			lasting[key] = t
		}
	}
	s.young, s.old = lasting, s.young
	s.most = shardHalf + 2*len(lasting)
}

func (s *shard) add(c v1.Counter) {
	t := s.find(c.Key)
	if t == nil {
		t = &tally{expires: c.Expires}
		s.put(c.Key, t)
	}
	t.n++
}

func (s *shard) sub(key string) {
	t := s.find(key)
	if t == nil {
		return
	}
	if t.n--; t.n <= 0 {
		delete(s.young, key)
	}
}

package agent

import (
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Bounds of a Memo.
const (
	memoEntries = 1000
	memoBytes   = 32 << 20
	memoResult  = 1 << 20
)

// Memo stores results of tools with a cache, or with hints.read_only, by tool and arguments. It holds at most 1,000
// results of at most 1 MiB each, and 32 MiB in total. When it is full, it is cleared. Several runs may share it.
type Memo struct {
	mu      sync.Mutex
	entries map[string]memory
	size    int
	puts    int // number of results that were ever added
}

type memory struct {
	tool   *v1.Tool // a reloaded tool is a different pointer
	result v1.Result
	at     time.Time
	size   int
	number int // the value of puts when this one was added
}

// NewMemo returns an empty Memo.
func NewMemo() *Memo { return &Memo{entries: map[string]memory{}} }

// get returns a result that is not among the first `after` results that were added.
func (m *Memo) get(key string, tool *v1.Tool, now time.Time, ttl time.Duration, after int) (v1.Result, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	got, ok := m.entries[key]
	fresh := got.tool == tool && (ttl <= 0 || now.Sub(got.at) < ttl)
	return got.result, ok && fresh && got.number > after
}

func (m *Memo) put(key string, tool *v1.Tool, now time.Time, res v1.Result) {
	size := len(key) + len(res.Content) + sizeOf(res.Parts)
	for _, p := range res.Parts {
		size += len(p.Text)
	}
	if size > memoResult {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.size += size - m.entries[key].size
	if m.size > memoBytes || len(m.entries) >= memoEntries {
		clear(m.entries)
		m.size = size
	}
	m.puts++
	m.entries[key] = memory{tool, res, now, size, m.puts}
}

func (m *Memo) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.puts
}

// lifetime returns how long results of the called tool may be used again; 0 means until
// the run ends.
func (c *Call) lifetime() (ttl time.Duration, ok bool) {
	if c.to.sub != nil {
		return 0, false
	}
	s := &c.to.item.Tool().Spec
	if s.Cache != nil {
		ttl = s.Cache.Lifetime()
		return ttl, ttl > 0
	}
	yes, _ := readOnly(s)
	return 0, yes
}

// readOnly reports whether a tool declares that it is read-only (yes), or that it is not (no).
func readOnly(s *v1.ToolSpec) (yes, no bool) {
	if s.Hints == nil || s.Hints.ReadOnly == nil {
		return false, false
	}
	return *s.Hints.ReadOnly, !*s.Hints.ReadOnly
}

// writes reports whether a call may change what other tools read. A tool with a cache
// counts as read-only unless hints.read_only is false.
func (c *Call) writes() bool {
	if c.to.sub != nil {
		return false // the calls of that prompt decide
	}
	s := &c.to.item.Tool().Spec
	yes, no := readOnly(s)
	return no || !yes && (s.Cache == nil || s.Cache.Lifetime() == 0)
}

// wrote invalidates the results that this run read so far, because a call may have changed
// something.
func (l *loop) wrote() {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	l.shared.writes++
	l.shared.stale = l.opts.Memo.count()
}

// reads returns the number of writes so far, and the number of results in the memo that are older than the last write.
func (s *shared) reads() (writes, stale int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes, s.stale
}

func (l *loop) memorable(c *Call) bool {
	_, ok := c.lifetime()
	return ok && !l.opts.NoCache
}

// memoKey returns a key that separates the results of principals and, if the results have no lifetime, those of runs.
func (l *loop) memoKey(c *Call, ttl time.Duration) string {
	key := l.opts.Principal + "\x00" + c.key
	if ttl == 0 {
		key = l.opts.Session + "\x00" + l.opts.Turn + "\x00" + key
	}
	return key
}

// recall copies the result of an equal earlier call, if there is one.
func (l *loop) recall(c *Call) bool {
	if !l.memorable(c) {
		return false
	}
	ttl, _ := c.lifetime()
	_, stale := l.shared.reads()
	res, ok := l.opts.Memo.get(l.memoKey(c, ttl), c.to.item.Tool(), l.opts.Now(), ttl, stale)
	if !ok {
		return false
	}
	res.Repair, res.DurationMS, res.Attempts = c.Result.Repair, 0, 0
	c.Result, c.Cached, c.skip = res, true, true
	return true
}

func (l *loop) remember(c *Call) {
	if c.Result.Status != v1.StatusComplete || !l.memorable(c) {
		return
	}
	ttl, _ := c.lifetime()
	l.opts.Memo.put(l.memoKey(c, ttl), c.to.item.Tool(), l.opts.Now(), c.Result)
}

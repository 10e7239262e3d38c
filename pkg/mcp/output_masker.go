package mcp

import (
	"sync"

	"toolctl.dev/toolctl/internal/redact"
)

// outputMasker masks what a server says outside of requests, such as its stderr and its log: what
// the calls hide that it was sent last. Some of it comes when its call has ended.
type outputMasker struct {
	mu     sync.Mutex
	last   []*redact.Masker // the newest last
	joined *redact.Masker   // of all these; nil when it is to be made
}

// lastCalls is how many calls count, of those that hide something.
const lastCalls = 16

// add counts a call with what it hides, if anything.
func (k *outputMasker) add(m *redact.Masker) {
	if m.Empty() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.last) == lastCalls {
		k.last = append(k.last[:0], k.last[1:]...)
	}
	k.last, k.joined = append(k.last, m), nil
}

// masker returns what masks all of it; nil when there is nothing to mask.
func (k *outputMasker) masker() *redact.Masker {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.joined == nil {
		for _, m := range k.last {
			k.joined = m.Join(k.joined)
		}
	}
	return k.joined
}

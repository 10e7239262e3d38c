package mcp

import (
	"sync"

	"toolctl.dev/toolctl/internal/redact"
)

// outputMasker masks the output of a server outside of requests, such as its stderr and its log, with the
// masks of recent calls. Output of a call may arrive after the call has ended.
type outputMasker struct {
	mu     sync.Mutex
	last   []*redact.Masker // the newest last
	joined *redact.Masker   // combines all of last; nil if it must be rebuilt
}

// lastCalls is the number of recent calls with secrets that are remembered.
const lastCalls = 16

// add remembers the masks of a call, if it has any.
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

// masker returns the combined masks; nil if there is nothing to mask.
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

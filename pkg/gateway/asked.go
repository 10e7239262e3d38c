package gateway

import (
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// asked tracks the MCP servers that clients wait for: those that were not queried yet since they
// were added or changed.
type asked struct {
	mu   sync.Mutex
	open map[v1.Key]time.Time // until when clients wait
	more chan struct{}        // closed when one was asked, be it in vain
}

// listTime is how long clients wait for what servers offer, from when they are first
// asked. Who is later is told of by a notification that the list changed.
const listTime = 5 * time.Second

// await has clients wait for servers that are about to be asked.
func (a *asked) await(keys []v1.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range keys {
		a.open[k] = time.Now().Add(listTime)
	}
}

func (a *asked) note(k v1.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, k)
	close(a.more)
	a.more = make(chan struct{})
}

// waits returns how long to wait for servers that fit, 0 for none, and what closes when one
// more was asked.
func (a *asked) waits(fits func(v1.Key) bool) (time.Duration, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var longest time.Duration
	for k, until := range a.open {
		if fits(k) {
			longest = max(longest, time.Until(until))
		}
	}
	return longest, a.more
}

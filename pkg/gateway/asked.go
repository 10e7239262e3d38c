package gateway

import (
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// asked tracks the MCP servers that clients wait for: servers that were added or changed and have not been queried
// since.
type asked struct {
	mu   sync.Mutex
	open map[v1.Key]time.Time // when clients stop waiting
	more chan struct{}        // closed when a query ends, even without success
}

// listTime is the maximum time that clients wait for the first answers of servers. Later answers lead to a list_changed
// notification.
const listTime = 5 * time.Second

// await makes clients wait for servers that are about to be queried.
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

// waits returns how long to wait for the matching servers, 0 if there are none, and a channel that is closed when the
// query of a server ends.
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

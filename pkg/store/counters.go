package store

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Counters store the counts of policies, by the clock of the store, see [v1.Counter]. They are exact across all
// goroutines and processes that use the store.
type Counters interface {
	// Reserve adds one to every counter, or changes nothing if one of them has reached its limit. It returns the
	// previous counts, in the order given, and full, the index of the first counter that has reached its limit, or -1.
	// A counter with a negative limit has no limit.
	Reserve(ctx context.Context, counters []v1.Counter) (counts []v1.Count, full int, err error)
	// Release subtracts one from every counter, after a reserved call that never ran. Their Ends are those of its
	// counts, and a window that is over stays unchanged. No count falls below 0.
	Release(ctx context.Context, counters []v1.Counter) error
	// Read returns the counts, in the order given. A counter that was never reserved or has expired is 0.
	Read(ctx context.Context, counters []v1.Counter) (counts []v1.Count, err error)
}

package store

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Counters are the counts of policies, by the clock of the store, see [v1.Counter]. They are
// exact over all goroutines and processes that use it.
type Counters interface {
	// Reserve adds one to every counter, or to none when one of them has reached its
	// limit. It returns the counts before, in the order given, and full, the index of
	// the first counter whose limit is reached, or -1. A negative limit only counts.
	Reserve(ctx context.Context, counters []v1.Counter) (counts []v1.Count, full int, err error)
	// Release takes back one from every counter, after a reserved call that never ran;
	// their Ends are those of its counts, and a window that is over stays as it is. No count
	// falls below 0.
	Release(ctx context.Context, counters []v1.Counter) error
	// Read returns the counts, in the order given; a counter that was never reserved
	// or has expired is 0.
	Read(ctx context.Context, counters []v1.Counter) (counts []v1.Count, err error)
}

package policy

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Counters keeps counts, by a clock of its own. The counters of one call of a method have
// distinct keys. All methods may be called by many goroutines at once, and each is one step
// to the others: between the check and the addition of Reserve no other takes place.
type Counters interface {
	// Reserve adds one to every counter, or to none of them when one is full: when
	// its limit is not negative and its count has reached it. counts are those
	// before the call, one for each counter; full is the index of the first counter
	// that is full, or -1 when all were added to. After an error nothing was added.
	Reserve(ctx context.Context, counters []v1.Counter) (counts []v1.Count, full int, err error)
	// Release takes back what a Reserve of the same counters added; their Ends are those of
	// its counts, and what was counted in a window that is over stays. No count falls
	// below 0, and a count that is no longer kept is not an error.
	Release(ctx context.Context, counters []v1.Counter) error
	// Read returns the counts as they stand; a count that was never added to is 0.
	Read(ctx context.Context, counters []v1.Counter) (counts []v1.Count, err error)
}

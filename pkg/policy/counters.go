package policy

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Counters keeps counts and has its own clock. The counters of one method call have distinct keys. All methods are
// atomic and safe for concurrent use: Reserve checks and increases the counts in one step.
type Counters interface {
	// Reserve adds one to every counter, or changes no counter if one is full. A counter is full if its limit is not
	// negative and its count has reached the limit. counts are the counts before the call, one for each counter; full is
	// the index of the first full counter, or -1 if all were increased. After an error, no counter has changed.
	Reserve(ctx context.Context, counters []v1.Counter) (counts []v1.Count, full int, err error)
	// Release reverts a Reserve of the same counters. The Ends of each counter is that of its count from Reserve; counts
	// of a past window do not change. No count falls below 0, and a count that no longer exists is not an error.
	Release(ctx context.Context, counters []v1.Counter) error
	// Read returns the current counts; a count without calls is 0.
	Read(ctx context.Context, counters []v1.Counter) (counts []v1.Count, err error)
}

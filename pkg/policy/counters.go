package policy

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Counters keeps counts, with a clock of its own. The counters of one method call have distinct
// keys. All methods are atomic and safe for concurrent use: nothing happens between the check
// and the addition of Reserve.
type Counters interface {
	// Reserve adds one to every counter, or to none if one is full: if its limit is not
	// negative and its count has reached the limit. counts are the counts before the
	// call, one for each counter; full is the index of the first full counter, or -1 if
	// all were increased. After an error nothing was added.
	Reserve(ctx context.Context, counters []v1.Counter) (counts []v1.Count, full int, err error)
	// Release reverts a Reserve of the same counters, whose Ends are those of its counts;
	// counts of a past window stay. No count falls below 0, and a count that is no longer
	// kept is not an error.
	Release(ctx context.Context, counters []v1.Counter) error
	// Read returns the current counts; a count without calls is 0.
	Read(ctx context.Context, counters []v1.Counter) (counts []v1.Count, err error)
}

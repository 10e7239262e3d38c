package admission

import (
	"context"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// RateCounters count for all servers that use them; a store is one.
type RateCounters interface {
	// Reserve adds one to every counter, or to none when one of them has reached its limit, as
	// that of [toolctl.dev/toolctl/pkg/store.Counters] does.
	Reserve(ctx context.Context, counters []v1.Counter) (counts []v1.Count, full int, err error)
}

// sharedRate holds one key to a rate over all servers: in each window of the time that a burst takes
// at the rate, by the clock of the counters, a burst and no more. What a large burst allows is
// taken in parts, which one server has for itself until the window is over.
type sharedRate struct {
	counters RateCounters
	counter  v1.Counter
	now      func() time.Time

	mu   sync.Mutex // held while the counters are asked
	left int        // of the part that was taken
	ends time.Time  // of its window
}

// sharedParts is how many parts a burst has at most.
const sharedParts = 64

// window is how long a burst lasts at the rate.
func (r *rates) window() time.Duration {
	return max(time.Duration(float64(r.burst)/float64(r.limit)*float64(time.Second)).Truncate(time.Microsecond), time.Microsecond)
}

// take counts one request and returns how long its sender must wait for it; 0 when it may go on.
func (s *sharedRate) take(ctx context.Context) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left > 0 && s.now().Before(s.ends) {
		s.left--
		return 0, nil
	}
	for _, n := range []int{max(1, int(s.counter.Limit)/sharedParts), 1} {
		part := make([]v1.Counter, n)
		for i := range part {
			part[i] = s.counter
		}
		counts, full, err := s.counters.Reserve(ctx, part)
		if err != nil {
			return 0, err
		}
		if full < 0 {
			s.left, s.ends = n-1, counts[0].Ends
			return 0, nil
		}
		s.ends = counts[0].Ends
	}
	s.left = 0
	return min(max(s.ends.Sub(s.now()), time.Second), s.counter.Window+time.Second), nil
}

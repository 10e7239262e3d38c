package admission

import (
	"context"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// RateCounters count for all servers that share them. A store implements RateCounters.
type RateCounters interface {
	// Reserve adds one to every counter, or to no counter if one has reached its limit, as described for
	// [toolctl.dev/toolctl/pkg/store.Counters].
	Reserve(ctx context.Context, counters []v1.Counter) (counts []v1.Count, full int, err error)
}

// sharedRate limits the rate of one key across all servers. A window lasts as long as a burst takes at the
// rate, by the clock of the counters, and each window allows one burst. A server takes parts of a large
// burst, which it may use alone until the window ends.
type sharedRate struct {
	counters RateCounters
	counter  v1.Counter
	now      func() time.Time

	mu   sync.Mutex // held during the request to the counters
	left int        // remaining requests of the reserved part
	ends time.Time  // when the window of that part ends
}

// sharedParts is the maximum number of parts of a burst.
const sharedParts = 64

// window returns how long a burst takes at the rate.
func (r *rates) window() time.Duration {
	return max(time.Duration(float64(r.burst)/float64(r.limit)*float64(time.Second)).Truncate(time.Microsecond), time.Microsecond)
}

// take counts one request and returns how long its sender must wait, or 0 if it need not wait.
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

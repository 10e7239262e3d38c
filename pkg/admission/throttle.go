package admission

import (
	"context"
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// throttle slows down a principal that uses the processors so much that others have to wait, and a
// principal that has used up its part of the calls. The requests of such a principal continue one at a
// time, with a pause between two. Other principals are not delayed.
type throttle struct {
	step time.Duration // between two requests
	lags func() bool   // reports whether work waits for the processors

	mu     sync.Mutex
	of     map[string]*throttled
	judged time.Time
}

// throttled is a principal with recent requests.
type throttled struct {
	work  float64   // the cost of its recent requests, where a small one costs 1
	slow  time.Time // the time until which it is throttled
	ready time.Time // when its next request continues, if it is throttled
}

const (
	// smallRequest is how many bytes of a request count as one small request.
	smallRequest = 16 << 10

	judging    = 50 * time.Millisecond // interval between two searches for principals to throttle
	forgetting = time.Second           // after this time, work counts only 1/e
	slowing    = 2 * time.Second       // how long a principal stays throttled
	atMost     = 2 * time.Second       // maximum delay of a request
	tooMuch    = 1.25                  // times the average work of all principals
)

// newThrottle returns a throttle for the processors available to this process.
func newThrottle() *throttle {
	const stepOfOne = 20 * time.Millisecond
	return &throttle{step: stepOfOne / time.Duration(runtime.GOMAXPROCS(0)), lags: newLag().high, of: map[string]*throttled{}}
}

// wait counts a request by its size, and delays it if its principal is throttled. full means that the
// principal has used up its calls.
func (t *throttle) wait(ctx context.Context, principal string, size int, full bool) {
	if principal == "" {
		return
	}
	left := t.add(principal, max(1, float64(size/smallRequest)), full)
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// add counts work and returns the delay before it may continue.
func (t *throttle) add(principal string, work float64, full bool) time.Duration {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.judged) >= judging {
		t.judge(now)
	}
	of := t.of[principal]
	if of == nil {
		of = &throttled{}
		t.of[principal] = of
	}
	of.work += work
	left := of.ready.Sub(now)
	of.ready = now.Add(min(max(left, 0)+time.Duration(work*float64(t.step)), atMost))
	if !full && now.After(of.slow) {
		return 0
	}
	return left
}

// judge finds the principals to throttle. It is called under mu.
func (t *throttle) judge(now time.Time) {
	keep := math.Exp(-float64(now.Sub(t.judged)) / float64(forgetting))
	t.judged = now
	var all float64
	for name, of := range t.of {
		if of.work *= keep; of.work < 0.1 && now.After(of.slow) {
			delete(t.of, name)
			continue
		}
		all += of.work
	}
	if !t.lags() {
		return
	}
	part := all / float64(len(t.of)) * tooMuch
	for _, of := range t.of {
		if of.work > part {
			of.slow = now.Add(slowing)
		}
	}
}

// lag measures how long runnable goroutines wait for a processor. It is not safe for concurrent use.
type lag struct {
	sample []metrics.Sample
	counts []uint64 // as of the last read
}

// highLag is the 95th percentile of the scheduling delay at which the processors count as overloaded.
const highLag = 2 * time.Millisecond

func newLag() *lag {
	return &lag{sample: []metrics.Sample{{Name: "/sched/latencies:seconds"}}}
}

// high reports whether the 95th percentile of the delay since the last call is at least highLag.
func (l *lag) high() bool {
	metrics.Read(l.sample)
	if l.sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return false
	}
	h := l.sample[0].Value.Float64Histogram()
	if l.counts == nil {
		l.counts = make([]uint64, len(h.Counts))
	}
	var all, late uint64
	for i, n := range h.Counts {
		some := n - l.counts[i]
		l.counts[i] = n
		if all += some; h.Buckets[i] >= highLag.Seconds() {
			late += some
		}
	}
	return late*20 > all
}

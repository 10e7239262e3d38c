package admission

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Rate limits the requests of one principal, or without authentication those of one address. The zero value
// sets no limit.
type Rate struct {
	// PerSecond is the number of requests per second that a sender may sustain.
	PerSecond float64
	// Burst is the number of requests that may arrive at once. Default: the requests of one second, but at
	// least 10.
	Burst int
}

// maxRates is the maximum number of keys with their own rate.
const maxRates = 10_000

// rates limits the rate of each key, in bounded memory.
type rates struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	counters RateCounters // nil if this server counts alone

	mu     sync.Mutex
	byKey  map[string]*rate.Limiter
	shared map[string]*sharedRate // for some of the keys of byKey
	swept  time.Time
	// others is the limiter shared by all keys that do not fit into byKey.
	others *rate.Limiter
}

// newRates returns the rates, or nil for no limit if r sets no rate.
func newRates(r Rate, counters RateCounters, now func() time.Time) *rates {
	if r.PerSecond <= 0 {
		return nil
	}
	const least = 10
	if r.Burst <= 0 {
		r.Burst = max(least, int(min(r.PerSecond, 1<<20)))
	}
	l := rate.Limit(r.PerSecond)
	return &rates{limit: l, burst: r.Burst, counters: counters, now: now, byKey: map[string]*rate.Limiter{}, shared: map[string]*sharedRate{}, others: rate.NewLimiter(l, r.Burst)}
}

// take counts one request and returns how long its sender must wait, or 0 if it need not wait.
func (r *rates) take(key string) time.Duration {
	if r == nil {
		return 0
	}
	now := r.now()
	spot := r.of(key, now).ReserveN(now, 1)
	wait := spot.DelayFrom(now)
	if wait > 0 {
		spot.CancelAt(now)
	}
	return wait
}

// takeShared does the same as take across all servers that use the same counters.
func (r *rates) takeShared(ctx context.Context, key string) (time.Duration, error) {
	if wait := r.take(key); wait > 0 || r == nil || r.counters == nil {
		return wait, nil
	}
	r.mu.Lock()
	s := r.shared[key]
	if s == nil {
		s = &sharedRate{counters: r.counters, counter: v1.Counter{Key: "rate-limit|" + key, Limit: int64(r.burst), Window: r.window()}, now: r.now}
		if r.byKey[key] != nil { // without room for the key, each request is counted individually
			r.shared[key] = s
		}
	}
	r.mu.Unlock()
	return s.take(ctx)
}

// of returns the limiter for a key.
func (r *rates) of(key string, now time.Time) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.byKey[key]; ok {
		return l
	}
	if len(r.byKey) >= maxRates && now.Sub(r.swept) >= time.Second {
		r.swept = now
		for k, l := range r.byKey {
			if l.TokensAt(now) >= float64(r.burst) { // it allows as much as a new limiter
				delete(r.byKey, k)
				delete(r.shared, k)
			}
		}
	}
	if len(r.byKey) >= maxRates {
		return r.others
	}
	l := rate.NewLimiter(r.limit, r.burst)
	r.byKey[key] = l
	return l
}

package executors

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// rate enforces spec.http.rate_limit for a tool: in any interval of length per, at most
// len(sent) requests are sent.
type rate struct {
	spec v1.HTTPRateLimit
	per  time.Duration
	turn chan struct{} // held by the next request; the others wait for it in order
	sent []time.Time   // times of the last requests, the oldest at next
	next int
}

var periods = map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour}

// maxRates is the number of tools above which idle tools are dropped.
const maxRates = 1024

// rateOf returns the rate of a tool, by its name, so that a reload without a change of the limit
// does not reset it.
func (h *HTTP) rateOf(t *v1.Tool) *rate {
	if t.Spec.HTTP == nil || t.Spec.HTTP.RateLimit == nil {
		return nil
	}
	spec := *t.Spec.HTTP.RateLimit
	key := v1.Key{Kind: v1.KindTool, Namespace: t.Namespace(), Name: t.Metadata.Name}
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rates[key]; r != nil && r.spec == spec {
		return r
	}
	if len(h.rates) >= maxRates {
		for key, r := range h.rates {
			if r.idle() {
				delete(h.rates, key)
			}
		}
	}
	r := &rate{spec: spec, per: periods[spec.Per], turn: make(chan struct{}, 1), sent: make([]time.Time, max(1, spec.Requests))}
	h.rates[key] = r
	return r
}

// idle reports whether no request was sent in the last interval, and no request is waiting.
func (r *rate) idle() bool {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	default:
		return false
	}
	last := (r.next + len(r.sent) - 1) % len(r.sent)
	return time.Since(r.sent[last]) > r.per
}

var errRateTooLate = errors.New("the next request may be sent only after the deadline of the call")

// wait returns when a request may be sent, or with an error if ctx ends before.
func (r *rate) wait(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	at := r.sent[r.next].Add(r.per)
	if deadline, ok := ctx.Deadline(); ok && at.After(deadline) {
		return errRateTooLate
	}
	if d := time.Until(at); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.sent[r.next] = time.Now()
	r.next = (r.next + 1) % len(r.sent)
	return nil
}

// turn waits until the rate limit of the tool allows the next request.
func (c *httpCall) turn(ctx context.Context) error {
	if c.p.rate == nil {
		return nil
	}
	err := c.p.rate.wait(ctx)
	limit := fmt.Sprintf("the rate of %s per %s (spec.http.rate_limit)", clip.Count(c.p.rate.spec.Requests, "request"), c.p.rate.spec.Per)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return c.fail(v1.PhaseExecute, "cancelled while waiting for "+limit+c.tries(), err)
	}
	return c.fail(v1.PhaseTimeout, "timed out: "+limit+" allows no request before the deadline of the call"+c.tries(), err)
}

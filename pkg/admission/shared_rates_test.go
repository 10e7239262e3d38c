package admission

import (
	"context"
	"errors"
	"testing"
	"time"
	"toolctl.dev/toolctl/pkg/policy"

	v1 "toolctl.dev/toolctl/api/v1"
)

// TestSharedRate checks that two servers together allow only one burst per window.
func TestSharedRate(t *testing.T) {
	for _, burst := range []int{1, 10, 640} {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		counters := policy.NewMemoryCounters(clock)
		perSecond := float64(burst) / 3600
		a, b := newRates(Rate{perSecond, burst}, counters, clock), newRates(Rate{perSecond, burst}, counters, clock)
		for window := range 2 {
			went := 0
			for i := range 2 * burst {
				r := a
				if i%3 == 0 {
					r = b
				}
				wait, err := r.takeShared(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				if wait == 0 {
					went++
				} else if wait < time.Second || wait > time.Hour+time.Second {
					t.Errorf("wait %s", wait)
				}
			}
			if least := burst - 2*max(burst/sharedParts-1, 0); went > burst || went < least {
				t.Errorf("burst %d, window %d: %d went on, want %d to %d", burst, window, went, least, burst)
			}
			now = now.Add(time.Hour)
		}
	}
}

type noCounters struct{}

var errAway = errors.New("away")

func (noCounters) Reserve(context.Context, []v1.Counter) ([]v1.Count, int, error) {
	return nil, -1, errAway
}

// TestSharedRateFails checks that requests are refused while they cannot be counted.
func TestSharedRateFails(t *testing.T) {
	r := newRates(Rate{PerSecond: 10}, noCounters{}, time.Now)
	if _, err := r.takeShared(t.Context(), "k"); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
	if wait, err := (*rates)(nil).takeShared(t.Context(), "k"); wait != 0 || err != nil {
		t.Errorf("without a rate: %s, %v", wait, err)
	}
}

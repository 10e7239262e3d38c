package response

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		seconds, milliseconds string
		want                  time.Duration
		ok                    bool
	}{
		{"0", "", 0, true}, {"120", "", 2 * time.Minute, true}, {"0.5", "", 500 * time.Millisecond, true},
		{"2", "10", 10 * time.Millisecond, true},
		{"99999999999999999999999", "", 24 * time.Hour, true}, {"1e300", "", 24 * time.Hour, true},
		{"Sat, 21 Nov 2026 08:00:30 GMT", "", 30 * time.Second, true}, {"Saturday, 21-Nov-26 08:00:30 GMT", "", 30 * time.Second, true},
		{"Sat, 21 Nov 2026 07:00:00 GMT", "", 0, true}, {"Wed, 21 Nov 2096 07:00:00 GMT", "", 24 * time.Hour, true},
		{"", "", 0, false}, {"-1", "", 0, false}, {"NaN", "", 0, false}, {"soon", "", 0, false},
	} {
		h := http.Header{"Retry-After": {c.seconds}, "Retry-After-Ms": {c.milliseconds}}
		if got, ok := RetryAfter(h, now); got != c.want || ok != c.ok {
			t.Errorf("%q, %q: got %s, %v, want %s, %v", c.seconds, c.milliseconds, got, ok, c.want, c.ok)
		}
	}
}

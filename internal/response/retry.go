package response

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter returns how long a server asks to wait before the next attempt, at most a day: Retry-After in seconds or as
// a date (RFC 9110, section 10.2.3), or Retry-After-Ms, which is more precise.
func RetryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	const longest = 24 * time.Hour // a longer wait could overflow
	for _, field := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		text := h.Get(field.name)
		if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 {
			return time.Duration(min(n*float64(field.unit), float64(longest))), true
		}
		if at, err := http.ParseTime(text); err == nil {
			return min(max(0, at.Sub(now)), longest), true
		}
	}
	return 0, false
}

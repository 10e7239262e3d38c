package clip

import (
	"strings"
	"time"
)

// Duration returns a duration with about three digits: "1.23s", "350ms", "1m5s", "2h30m".
func Duration(d time.Duration) string {
	unit := time.Minute
	switch long := d.Abs(); {
	case long < time.Minute:
		for unit = 1; long >= 1000*unit; {
			unit *= 10
		}
	case long < time.Hour:
		unit = time.Second
	}
	text := d.Round(unit).String()
	for _, end := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, end) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Milliseconds formats a number of milliseconds like [Duration].
func Milliseconds(ms float64) string { return Duration(time.Duration(ms * float64(time.Millisecond))) }

package main

import (
	"strconv"
	"strings"
	"time"
)

// timeForms describes the values that parseTime accepts.
const timeForms = "a time ago such as 30m, 24h, 7d or 2w, a day, or a time such as 2026-11-21T07:00:00Z"

// parseTime parses the value of a flag: a time ago, a day in UTC, or a time; "" is the zero time.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, ok := parseAgo(text); ok {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("%s %q: expected %s", flag, text, timeForms)
}

// parseAgo parses a duration that may start with weeks and days of 24 hours: 2w, 1d12h.
func parseAgo(text string) (sum time.Duration, ok bool) {
	const day, most = 24 * time.Hour, 100 * 365 * 24 * time.Hour
	rest := text
	for _, u := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * day}, {"d", day}} {
		number, after, found := strings.Cut(rest, u.letter)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return 0, false
		}
		sum, rest = sum+time.Duration(n)*u.length, after
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || d > most {
			return 0, false
		}
		sum += d
	}
	return sum, text != "" && sum <= most
}

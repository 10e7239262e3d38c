package clip_test

import (
	"testing"
	"time"

	"toolctl.dev/toolctl/internal/clip"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]string{
		"0s": "0s", "9ns": "9ns", "11.234µs": "11.2µs", "1.234567ms": "1.23ms", "250ms": "250ms", "1250ms": "1.25s", "1.234567891s": "1.23s", "59.96s": "1m",
		"60s": "1m", "90.4s": "1m30s", "1h": "1h", "90m": "1h30m", "59m59.9s": "1h", "24h": "24h", "10h10m10s": "10h10m", "-1.5s": "-1.5s", "20m": "20m", "10s": "10s",
	} {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := clip.Duration(d); got != want {
			t.Errorf("%s: %s, expected %s", text, got, want)
		}
	}
	if got := clip.Milliseconds(1234.5678); got != "1.23s" {
		t.Error(got)
	}
}

package plainhttp

import (
	"net/http"
	"testing"
	"time"
)

func TestWaits(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"":                      idleTimeout,
		"timeout=5":             4 * time.Second,
		"timeout=10, max=1000":  8 * time.Second,
		"max=1000, Timeout=10":  8 * time.Second,
		"timeout=0":             0,
		"timeout=3600":          idleTimeout,
		"timeout=-1":            idleTimeout,
		"timeout=99999999999":   idleTimeout,
		"timeout":               idleTimeout,
		"timeout=5s, timeout=x": idleTimeout,
	} {
		if got := waits(http.Header{"Keep-Alive": {text}}); got != want {
			t.Errorf("%q: %v, not %v", text, got, want)
		}
	}
}

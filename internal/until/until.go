// Package until has tests wait for what another process does, which no channel tells them.
package until

import (
	"testing"
	"time"
)

// limit is long enough for a busy machine and shorter than the time of a test program.
const limit = time.Minute

// NoError asks again and again until the answer is nil. After a minute the test fails with the last answer.
func NoError(t testing.TB, ask func() error) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(limit); ; <-again.C {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s still: %v", limit, err)
		}
	}
}

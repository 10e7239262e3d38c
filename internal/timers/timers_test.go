package timers_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"toolctl.dev/toolctl/internal/timers"
)

// Each function is called at its time, whatever was started or stopped before it.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set timers.Set
		began := time.Now()
		called := make(chan time.Duration, 10)
		after := func(seconds int) *timers.Timer {
			return set.AfterFunc(time.Duration(seconds)*time.Second, func() { called <- time.Since(began) })
		}
		stopped := []*timers.Timer{after(1), after(3), after(5), after(7)}
		after(6)
		after(2)
		after(4)
		for _, s := range stopped {
			if !s.Stop() || s.Stop() {
				t.Error("a timer that waits is stopped once")
			}
		}
		done := after(0)
		time.Sleep(2500 * time.Millisecond)
		if done.Stop() {
			t.Error("a timer that ended is not stopped")
		}
		after(1) // 3.5: sooner than all that wait
		after(30)
		time.Sleep(time.Minute)
		var got []time.Duration
		for len(called) > 0 {
			got = append(got, <-called)
		}
		const ms = time.Millisecond
		if want := []time.Duration{0, 2000 * ms, 3500 * ms, 4000 * ms, 6000 * ms, 32500 * ms}; !slices.Equal(got, want) {
			t.Errorf("called at %v, expected %v", got, want)
		}
	})
}

// A set in which nothing waits any more goes on with the next timer.
func TestTimersAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set timers.Set
		set.AfterFunc(time.Second, func() {}).Stop()
		time.Sleep(time.Hour)
		began, called := time.Now(), make(chan time.Duration)
		set.AfterFunc(time.Second, func() { called <- time.Since(began) })
		if took := <-called; took != time.Second {
			t.Errorf("called after %s", took)
		}
	})
}

func BenchmarkTimers(b *testing.B) {
	b.Run("one by one", func(b *testing.B) {
		for b.Loop() {
			time.AfterFunc(30*time.Second, func() {}).Stop()
		}
	})
	b.Run("in a set", func(b *testing.B) {
		var set timers.Set
		for b.Loop() {
			set.AfterFunc(30*time.Second, func() {}).Stop()
		}
	})
}

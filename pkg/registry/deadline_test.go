package registry

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// A context made from a deadline ends with it, and costs no goroutine.
func TestDeadlineIsHeardByContextsMadeFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := withDeadline(t.Context(), time.Second)
		defer d.stop()
		before := runtime.NumGoroutine()
		child, cancel := context.WithCancel(d)
		defer cancel()
		if now := runtime.NumGoroutine(); now != before {
			t.Errorf("%d goroutines more", now-before)
		}
		began := time.Now()
		<-child.Done()
		if took := time.Since(began); took != time.Second || !errors.Is(context.Cause(child), context.DeadlineExceeded) {
			t.Errorf("ended after %s with %v", took, context.Cause(child))
		}
	})
}

func TestDeadlineOfTheCallerWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d := withDeadline(ctx, time.Hour)
		defer d.stop()
		if at, ok := d.Deadline(); !ok || time.Until(at) != time.Second {
			t.Errorf("deadline in %s", time.Until(at))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if d.Err() == nil {
			t.Error("the caller's end was not heard")
		}
	})
}

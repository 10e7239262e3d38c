package callctx

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// A context derived from a deadline ends with it, and needs no goroutine.
func TestDeadlineIsHeardByContextsMadeFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := WithDeadline(t.Context(), time.Second)
		defer d.Stop()
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
		d := WithDeadline(ctx, time.Hour)
		defer d.Stop()
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

func TestDeadlineStopsWhileAPersonIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := WithDeadline(t.Context(), 2*time.Second)
		defer outer.Stop()
		d := WithDeadline(outer, time.Second)
		defer d.Stop()
		child, cancel := context.WithCancel(d)
		defer cancel()
		time.Sleep(900 * time.Millisecond)
		first, second := PauseDeadlines(child), PauseDeadlines(child)
		if at, ok := d.Deadline(); ok {
			t.Errorf("a deadline at %s that is stopped", at)
		}
		time.Sleep(time.Hour)
		first()
		first() // counts once
		time.Sleep(time.Hour)
		if child.Err() != nil || d.Err() != nil || outer.Err() != nil {
			t.Fatalf("ended while it was stopped: %v, %v, %v", child.Err(), d.Err(), outer.Err())
		}
		second()
		began := time.Now()
		<-child.Done()
		if took := time.Since(began); took != 100*time.Millisecond || !errors.Is(d.Err(), context.DeadlineExceeded) || outer.Err() != nil {
			t.Errorf("ended after %s with %v, the outer one with %v", took, d.Err(), outer.Err())
		}
		resume := PauseDeadlines(child) // too late
		resume()
		if !errors.Is(d.Err(), context.DeadlineExceeded) {
			t.Errorf("went on after its end: %v", d.Err())
		}
	})
}

// A deadline that was paused when the context ended starts no timer any more.
func TestDeadlineResumesAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := WithDeadline(t.Context(), time.Second)
		done := d.Done()
		resume := d.Pause()
		d.Stop()
		<-done
		resume()
		time.Sleep(time.Hour)
		if !errors.Is(d.Err(), context.Canceled) {
			t.Errorf("the time ran after the end: %v", d.Err())
		}
	})
}

func TestNothingToPause(t *testing.T) {
	PauseDeadlines(t.Context())()
}

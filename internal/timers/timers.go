// Package timers has any number of functions wait for their times with one timer of the
// runtime.
//
// Nearly all that bounds the time of a call is stopped long before it is over. Yet a timer
// of the runtime that is the first to end wakes the thread that waits for the network, which
// costs more than a short call does; these wake it once in the shortest of their times.
package timers

import (
	"sync"
	"time"
)

// Set is any number of timers. The zero value is ready. Its methods, and those of its
// timers, may be called by many goroutines at once.
type Set struct {
	mu    sync.Mutex
	timer *time.Timer
	at    time.Time // it ends then, or earlier than anyone needs; zero when it does not run
	first *Timer    // of those that wait, in no order
}

// Timer is one function that waits.
type Timer struct {
	set        *Set
	at         time.Time
	f          func()
	prev, next *Timer
	waits      bool
}

// AfterFunc calls f in a goroutine of its own after a time, like [time.AfterFunc].
func (s *Set) AfterFunc(d time.Duration, f func()) *Timer {
	now := time.Now()
	t := &Timer{set: s, at: now.Add(d), f: f, waits: true}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.next = s.first; t.next != nil {
		t.next.prev = t
	}
	s.first = t
	if s.at.IsZero() || t.at.Before(s.at) {
		s.run(t.at, d)
	}
	return t
}

// Stop keeps the function from being called; false when it was called already, or stopped.
func (t *Timer) Stop() bool {
	s := t.set
	s.mu.Lock()
	defer s.mu.Unlock()
	was := t.waits
	s.drop(t)
	return was
}

// run has the timer end in d, at a time. It is called under mu.
func (s *Set) run(at time.Time, d time.Duration) {
	s.at = at
	if s.timer == nil {
		s.timer = time.AfterFunc(d, s.ended)
	} else {
		s.timer.Reset(d)
	}
}

// ended calls the functions whose time has come.
func (s *Set) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var soonest *Timer
	for t := s.first; t != nil; {
		next := t.next
		switch {
		case !t.at.After(now):
			s.drop(t)
			go t.f()
		case soonest == nil || t.at.Before(soonest.at):
			soonest = t
		}
		t = next
	}
	s.at = time.Time{}
	if soonest != nil {
		s.run(soonest.at, soonest.at.Sub(now))
	}
}

// drop takes a timer out. It is called under mu.
func (s *Set) drop(t *Timer) {
	if !t.waits {
		return
	}
	t.waits = false
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		s.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}

package mcp

import (
	"context"
	"sync"
	"time"

	"toolctl.dev/toolctl/internal/timers"
)

// withStopwatch returns a context that ends after a time which can be stopped.
func withStopwatch(ctx context.Context, d time.Duration, set *timers.Set) (context.Context, *stopwatch, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &stopwatch{timers: set, f: func() { cancel(context.DeadlineExceeded) }, left: d, from: time.Now()}
	w.timer = set.AfterFunc(d, w.f)
	return ctx, w, func() { w.end(); cancel(nil) }
}

// stopwatch is a timer that can be stopped by several at once.
type stopwatch struct {
	timers *timers.Set
	f      func()

	mu      sync.Mutex
	timer   *timers.Timer
	left    time.Duration
	from    time.Time // when the timer ran last
	stopped int
	over    bool
}

// end stops the time for good.
func (w *stopwatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

// pause stops the time until the function that it returns is called.
func (w *stopwatch) pause() (resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped++; w.stopped == 1 {
		w.timer.Stop()
		w.left -= time.Since(w.from)
	}
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.stopped--; w.stopped == 0 && !w.over {
			w.from = time.Now()
			w.timer = w.timers.AfterFunc(max(w.left, time.Millisecond), w.f)
		}
	})
}

package registry

import (
	"context"
	"sync"
	"time"

	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/internal/timers"
)

// deadline is a context that ends after a time, like context.WithTimeout, but
// starts its timer only when someone waits for it: a mock answers before that,
// and a timer would cost more than the call. It can be stopped while a person is
// asked; see [PauseDeadlines].
type deadline struct {
	context.Context // the caller's

	mu      sync.Mutex
	at      time.Time
	paused  int           // by so many
	left    time.Duration // while it is paused
	expired bool
	inner   context.Context // set by the first Done
	cancel  context.CancelFunc
	timers  *timers.Set
	timer   *timers.Timer // ends inner
}

func withDeadline(ctx context.Context, d time.Duration, set *timers.Set) *deadline {
	now := time.Now()
	at := now.Add(d)
	if d > 0 && at.Before(now) { // beyond what a time can hold
		at = now.AddDate(100, 0, 0)
	}
	if caller, ok := ctx.Deadline(); ok && caller.Before(at) {
		at = caller
	}
	return &deadline{Context: ctx, at: at, timers: set}
}

// Deadline is not known while the time is stopped.
func (d *deadline) Deadline() (time.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused > 0 {
		return d.Context.Deadline()
	}
	return d.at, true
}

// Value makes the deadline the [callctx.Pauser] of what is made from it.
func (d *deadline) Value(key any) any {
	if callctx.PauserKey(key) {
		return d
	}
	return d.Context.Value(key)
}

func (d *deadline) start() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inner == nil {
		d.inner, d.cancel = context.WithCancel(d.Context)
		if d.paused == 0 {
			d.run()
		}
	}
	return d.inner
}

// run starts the timer. It is called under mu.
func (d *deadline) run() {
	left := time.Until(d.at)
	if left <= 0 {
		d.expire()
		return
	}
	var t *timers.Timer
	t = d.timers.AfterFunc(left, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == t { // not stopped meanwhile
			d.expire()
		}
	})
	d.timer = t
}

// expire ends the context. It is called under mu.
func (d *deadline) expire() {
	d.expired = d.Context.Err() == nil
	d.cancel()
}

func (d *deadline) Done() <-chan struct{} { return d.start().Done() }

func (d *deadline) Err() error {
	if err := d.Context.Err(); err != nil && !d.isExpired() {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.expired:
		return context.DeadlineExceeded
	case d.inner != nil:
		return d.inner.Err()
	case d.paused == 0 && !time.Now().Before(d.at):
		return context.DeadlineExceeded
	}
	return nil
}

func (d *deadline) isExpired() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.expired
}

// AfterFunc lets contexts made from this one hear of its end without a goroutine
// each: package context asks for this method of contexts that are not its own.
func (d *deadline) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(d.start(), f) }

// Pause stops the time, and that of the caller's deadline where it can be stopped.
func (d *deadline) Pause() (resume func()) {
	outer := callctx.PauseDeadlines(d.Context)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused++; d.paused == 1 {
		d.left = time.Until(d.at)
		if d.timer != nil {
			d.timer.Stop()
			d.timer = nil
		}
	}
	return sync.OnceFunc(func() {
		outer()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.paused--; d.paused > 0 || d.expired {
			return
		}
		d.at = time.Now().Add(d.left)
		if d.inner != nil {
			d.run()
		}
	})
}

// stop frees the timer.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.cancel != nil {
		d.cancel()
	}
}

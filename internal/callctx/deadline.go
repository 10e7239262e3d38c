package callctx

import (
	"context"
	"sync"
	"time"
)

// Deadline is a context that ends after a time, like that of context.WithTimeout, but the time can be paused while a
// person is asked; see [PauseDeadlines]. It starts its timer when something waits for it: a mock answers earlier, and a
// timer would cost more than the call.
type Deadline struct {
	context.Context // the parent

	mu      sync.Mutex
	at      time.Time
	paused  int           // number of pauses
	left    time.Duration // remaining time while paused
	expired bool
	inner   context.Context // set by the first Done
	cancel  context.CancelFunc
	timer   *time.Timer // ends inner
}

// WithDeadline returns a context that ends after a time, or earlier with ctx. Stop frees its resources.
func WithDeadline(ctx context.Context, d time.Duration) *Deadline {
	now := time.Now()
	at := now.Add(d)
	if d > 0 && at.Before(now) { // the time overflowed
		at = now.AddDate(100, 0, 0)
	}
	if caller, ok := ctx.Deadline(); ok && caller.Before(at) {
		at = caller
	}
	return &Deadline{Context: ctx, at: at}
}

// Deadline returns false while the time is paused.
func (d *Deadline) Deadline() (time.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused > 0 {
		return d.Context.Deadline()
	}
	return d.at, true
}

type deadlineKey struct{}

// Value returns the deadline to [PauseDeadlines], for contexts derived from it.
func (d *Deadline) Value(key any) any {
	if key == (deadlineKey{}) {
		return d
	}
	return d.Context.Value(key)
}

func (d *Deadline) start() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inner == nil {
		d.inner, d.cancel = context.WithCancel(d.Context)
		d.timer = time.AfterFunc(time.Until(d.at), d.expire)
		if d.paused > 0 {
			d.timer.Stop()
		}
	}
	return d.inner
}

// expire ends the context, unless the time was paused in the meantime.
func (d *Deadline) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused == 0 && !time.Now().Before(d.at) {
		d.expired = d.inner.Err() == nil
		d.cancel()
	}
}

// Done implements [context.Context].
func (d *Deadline) Done() <-chan struct{} { return d.start().Done() }

// Err implements [context.Context].
func (d *Deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.expired:
		return context.DeadlineExceeded
	case d.inner != nil:
		return d.inner.Err()
	case d.paused == 0 && d.Context.Err() == nil && !time.Now().Before(d.at):
		return context.DeadlineExceeded
	}
	return d.Context.Err()
}

// AfterFunc lets derived contexts end without a goroutine each: package context calls this method on parents of other
// types.
func (d *Deadline) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(d.start(), f) }

// Pause pauses the time, and that of the parent's deadline if possible, until resume is called. After several
// concurrent pauses, the time continues when all have resumed, with the remaining time.
func (d *Deadline) Pause() (resume func()) {
	outer := PauseDeadlines(d.Context)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused++; d.paused == 1 {
		d.left = time.Until(d.at)
		if d.timer != nil {
			d.timer.Stop()
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
		if d.timer != nil && d.inner.Err() == nil {
			d.timer.Reset(d.left)
		}
	})
}

// Stop ends the context.
func (d *Deadline) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inner != nil {
		d.timer.Stop()
		d.cancel()
	}
}

package registry

import (
	"context"
	"sync"
	"time"
)

// deadline is a context that ends after a time, like context.WithTimeout, but
// starts its timer only when someone waits for it: a mock answers before that,
// and a timer would cost more than the call.
type deadline struct {
	context.Context // the caller's
	at              time.Time

	mu     sync.Mutex
	inner  context.Context // set by the first Done
	cancel context.CancelFunc
}

func withDeadline(ctx context.Context, d time.Duration) *deadline {
	at := time.Now().Add(d)
	if d > 0 && at.Before(time.Now()) { // beyond what a time can hold
		at = time.Now().AddDate(100, 0, 0)
	}
	if caller, ok := ctx.Deadline(); ok && caller.Before(at) {
		at = caller
	}
	return &deadline{Context: ctx, at: at}
}

func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

func (d *deadline) start() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inner == nil {
		d.inner, d.cancel = context.WithDeadline(d.Context, d.at)
	}
	return d.inner
}

func (d *deadline) Done() <-chan struct{} { return d.start().Done() }

func (d *deadline) Err() error {
	if err := d.Context.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	inner := d.inner
	d.mu.Unlock()
	if inner != nil {
		return inner.Err()
	}
	if !time.Now().Before(d.at) {
		return context.DeadlineExceeded
	}
	return nil
}

// AfterFunc lets contexts made from this one hear of its end without a goroutine
// each: package context asks for this method of contexts that are not its own.
func (d *deadline) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(d.start(), f) }

// stop frees the timer.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}

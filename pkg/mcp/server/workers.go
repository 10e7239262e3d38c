package server

import (
	"context"
	"sync"
	"sync/atomic"
)

// workers carry out functions in goroutines that are kept for the next: one that carried out
// a call has the stack for it, which for a new one grows step by step.
type workers struct {
	ctx  context.Context // ends those that wait
	next chan func()     // for one that waits
	idle atomic.Int32    // how many wait
	all  sync.WaitGroup
}

// maxIdle is how many wait for another function.
const maxIdle = 16

func newWorkers(ctx context.Context) *workers {
	return &workers{ctx: ctx, next: make(chan func())}
}

// run carries out f in a goroutine.
func (w *workers) run(f func()) {
	select {
	case w.next <- f:
		return
	default:
	}
	w.all.Go(func() {
		for f != nil {
			f()
			f = w.another()
		}
	})
}

// another waits for the next function; nil when there will be none.
func (w *workers) another() func() {
	defer w.idle.Add(-1)
	if w.idle.Add(1) > maxIdle {
		return nil
	}
	select {
	case f := <-w.next:
		return f
	case <-w.ctx.Done():
		return nil
	}
}

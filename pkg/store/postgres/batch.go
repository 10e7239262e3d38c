package postgres

import (
	"context"
	"slices"
	"sync"

	"toolctl.dev/toolctl/pkg/store"
)

// maxBatch is the maximum number of items in one statement.
const maxBatch = 256

// batch executes many items in one statement. Items that arrive while a statement runs wait for the next one. Only one
// statement of a batch runs at a time in this process.
type batch[T any] struct {
	run    func(context.Context, []T) error
	closed <-chan struct{}
	gate   chan struct{} // holds the token of the running goroutine

	mu      sync.Mutex
	waiting []*waiter[T]
}

// waiter is a pending item.
type waiter[T any] struct {
	item T
	done chan struct{} // closed when the item was executed or failed
	err  error         // set before done is closed
}

func (b *batch[T]) start(closed <-chan struct{}, run func(context.Context, []T) error) {
	b.run, b.closed, b.gate = run, closed, make(chan struct{}, 1)
}

// do executes an item. Once its statement has begun, the end of ctx does not interrupt it.
func (b *batch[T]) do(ctx context.Context, item T) (err error) {
	w := &waiter[T]{item: item, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	for {
		select {
		case <-w.done:
			return w.err
		case b.gate <- struct{}{}:
			// This goroutine now executes all waiting items; w may already be done.
			b.next(context.WithoutCancel(ctx))
			<-b.gate
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-b.closed:
			err = store.ErrClosed
		}
		if b.withdraw(w) {
			return err
		}
		<-w.done // another goroutine executes it
		return w.err
	}
}

// next executes the waiting items, oldest first.
func (b *batch[T]) next(ctx context.Context) {
	b.mu.Lock()
	n := min(len(b.waiting), maxBatch)
	now := b.waiting[:n:n]
	b.waiting = slices.Clone(b.waiting[n:])
	b.mu.Unlock()
	if n == 0 {
		return
	}
	items := make([]T, n)
	for i, w := range now {
		items[i] = w.item
	}
	err := b.run(ctx, items)
	for _, w := range now {
		w.err = err
		close(w.done)
	}
}

// withdraw removes an item that is not being executed yet.
func (b *batch[T]) withdraw(w *waiter[T]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, w)
	if i < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return true
}

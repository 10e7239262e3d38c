package sqlstore

import (
	"context"
	"slices"
	"sync"

	"toolctl.dev/toolctl/pkg/store"
)

// maxBatch is the maximum number of items that are written together.
const maxBatch = 256

// Batch writes many items together, because a transaction is most of the cost of each. Items that arrive while others
// are written wait for the next turn.
type Batch[T any] struct {
	gate   chan struct{}
	closed <-chan struct{}
	run    func(context.Context, []T) error

	mu      sync.Mutex
	waiting []*waiter[T]
}

// waiter is an item that is not written yet.
type waiter[T any] struct {
	item T
	done chan struct{} // closed when the item was written or failed
	err  error         // set before done is closed
}

// NewBatch returns a batch whose items run writes, oldest first; its error is that of each item. The gate holds one
// token, that of the goroutine that writes. Other writers may share it. Closed ends with the store.
func NewBatch[T any](gate chan struct{}, closed <-chan struct{}, run func(context.Context, []T) error) *Batch[T] {
	return &Batch[T]{gate: gate, closed: closed, run: run}
}

// Do writes an item. Once the write has begun, the end of ctx does not interrupt it.
func (b *Batch[T]) Do(ctx context.Context, item T) (err error) {
	w := &waiter[T]{item: item, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	for {
		select {
		case <-w.done:
			return w.err
		case b.gate <- struct{}{}:
			// This goroutine now writes for all; w may already be written.
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
		<-w.done // another goroutine writes it
		return w.err
	}
}

// Waiting returns the number of items whose turn has not begun.
func (b *Batch[T]) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// next writes the waiting items, oldest first.
func (b *Batch[T]) next(ctx context.Context) {
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

// withdraw removes an item that is not being written yet.
func (b *Batch[T]) withdraw(w *waiter[T]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, w)
	if i < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return true
}

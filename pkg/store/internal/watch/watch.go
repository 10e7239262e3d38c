// Package watch has the loops that report the changes of a store. Backends say when to look for changes and read them;
// the loops wait without holding any resources.
package watch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/store"
)

// Source determines when to look for changes. The zero value is ready.
type Source struct {
	// Interval is the interval at which to look for changes by other processes; 0 means never.
	Interval time.Duration
	// Closed is closed when the store is closed.
	Closed <-chan struct{}

	mu sync.Mutex
	ch chan struct{}
}

// next returns a channel that the next Notify closes.
func (s *Source) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// Notify wakes every watch of this process.
func (s *Source) Notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// Loop calls look at once and after every possible change, until look returns an error or ctx ends. Loop returns that
// error, or [store.ErrClosed]. It holds no resources while it waits.
func (s *Source) Loop(ctx context.Context, look func() error) error {
	var tick <-chan time.Time
	if s.Interval > 0 {
		t := time.NewTicker(s.Interval)
		defer t.Stop()
		tick = t.C
	}
	for first := true; ; first = false {
		wake := s.next() // before look, so that no change is missed
		// The loop continues while the database is unavailable: the last result is still valid.
		if err := look(); err != nil && (first || !errors.Is(err, store.ErrUnavailable)) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Closed:
			return store.ErrClosed
		case <-wake:
		case <-tick:
		}
	}
}

// errLeft ends a loop whose consumer has stopped.
var errLeft = errors.New("left")

// seq converts a loop to a sequence. The end of ctx ends it without an error.
func seq[T any](ctx context.Context, s *Source, look func(yield func(T) bool) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		left := false
		err := s.Loop(ctx, func() error {
			err := look(func(v T) bool {
				left = left || !yield(v, nil)
				return !left
			})
			if left {
				return errLeft
			}
			return err
		})
		if !left && ctx.Err() == nil {
			var none T
			yield(none, err)
		}
	}
}

// Changes yields the changes after a resourceVersion. after returns the next changes, and whether there are more.
func Changes(ctx context.Context, s *Source, from int64, after func(ctx context.Context, from int64) (events []store.Event, more bool, err error)) iter.Seq2[store.Event, error] {
	return seq(ctx, s, func(yield func(store.Event) bool) error {
		for {
			events, more, err := after(ctx, from)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			for _, e := range events {
				if !yield(e) {
					return nil
				}
				from = e.Record.ResourceVersion
			}
			if err != nil || !more {
				return err
			}
		}
	})
}

// TooOld returns the error of a watch from a version whose changes the store no longer has; at is the present version.
func TooOld(from, at int64) error {
	if from > at {
		return fmt.Errorf("%w: version %d was requested, but the store is at %d, so it was replaced: list again and watch from there", store.ErrTooOld, from, at)
	}
	return fmt.Errorf("%w: the changes after %d are no longer kept: list again and watch from there", store.ErrTooOld, from)
}

// Latest yields the result of read at once, and again whenever version has changed.
func Latest[T any](ctx context.Context, s *Source, version func(context.Context) (int64, error), read func(context.Context) (T, error)) iter.Seq2[T, error] {
	seen := int64(-1)
	return seq(ctx, s, func(yield func(T) bool) error {
		at, err := version(ctx)
		if err != nil || at == seen {
			return err
		}
		now, err := read(ctx)
		if err != nil {
			return err
		}
		seen = at
		yield(now)
		return nil
	})
}

// errDecided ends the loop of Decided.
var errDecided = errors.New("decided")

// Decided waits until a call, which read returns, no longer waits for approval, and returns it.
func Decided(ctx context.Context, s *Source, id string, read func(ctx context.Context, id string) (v1.PendingCall, error)) (p v1.PendingCall, err error) {
	err = s.Loop(ctx, func() error {
		if p, err = read(ctx, id); err != nil {
			return err
		}
		if p.StateAt(time.Now()) != v1.ApprovalPending {
			return errDecided
		}
		return nil
	})
	if !errors.Is(err, errDecided) {
		return v1.PendingCall{}, err
	}
	return p, nil
}

// Audit calls fn for the selected audit records, and for those that are added later: see [store.Audit].
func Audit(ctx context.Context, s *Source, a store.Audit, filter store.AuditFilter, fn func([]store.AuditLine) error) error {
	first := true
	return s.Loop(ctx, func() error {
		head, err := a.AuditHead(ctx)
		if err == nil && !first && head.Lines < filter.After {
			return fmt.Errorf("the audit had %s and has %d now: the store was restored from an older backup, or records at its end were removed: 'toolctl audit verify' checks what is left", clip.Count(int(filter.After), "line"), head.Lines)
		}
		if err != nil || !first && head.Lines == filter.After {
			return err
		}
		filter.UpTo = head.Lines
		if err := parts(ctx, a, filter, fn); err != nil {
			return err
		}
		first, filter.After, filter.Limit = false, head.Lines, 0
		return nil
	})
}

// parts calls fn with batches of records; the last batch may be empty.
func parts(ctx context.Context, a store.Audit, filter store.AuditFilter, fn func([]store.AuditLine) error) error {
	const most = 512
	var part []store.AuditLine
	err := a.EachAudit(ctx, filter, func(l store.AuditLine) error {
		if part = append(part, l); len(part) < most {
			return nil
		}
		full := part
		part = nil
		return fn(full)
	})
	if err != nil {
		return err
	}
	return fn(part)
}

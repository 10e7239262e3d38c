package admission

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"
)

// Quota limits the number of concurrent things of one kind: in total, and for each principal, so that one
// principal cannot starve others.
type Quota struct {
	// Elsewhere returns the number that a principal uses at other replicas; nil without replicas.
	Elsewhere func(principal string) int

	what      string
	all, each int

	mu      sync.Mutex
	used    int
	refused int64          // number of refusals
	of      map[string]int // by principal
	freed   chan struct{}  // closed when a place is returned; created by a waiting caller
}

// NewQuota returns a quota of all in total. Each principal may use the given part of it. Callers without a
// name may use all of it.
func NewQuota(what string, all int, part float64) *Quota {
	return &Quota{what: what, all: all, each: max(1, int(math.Ceil(float64(all)*part))), of: map[string]int{}}
}

// All returns the total.
func (q *Quota) All() int { return q.all }

// QuotaError means that a quota is used up.
type QuotaError struct {
	// Own means that the principal used up its part, while others may have more.
	Own bool

	what string
}

func (e *QuotaError) Error() string {
	if e.Own {
		return fmt.Sprintf("too many %s by one principal at once: try again later", e.what)
	}
	return fmt.Sprintf("too many %s at once: try again later", e.what)
}

// Take takes one place for a principal, to be returned with Give. The error is a [QuotaError].
func (q *Quota) Take(principal string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.takeNow(principal)
	if err != nil {
		q.refused++
	}
	return err
}

// takeNow is called under mu.
func (q *Quota) takeNow(principal string) error {
	if principal != "" && q.usedUp(principal) {
		return &QuotaError{true, q.what}
	}
	return q.tryTake(principal)
}

// state returns the number of places in use and the number of refusals.
func (q *Quota) state() (used, refused int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(q.used), q.refused
}

// ByPrincipal returns the number of places that each principal uses.
func (q *Quota) ByPrincipal() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.of)
}

// usedUp reports whether a principal has used up its part, here and Elsewhere. It is called under mu.
func (q *Quota) usedUp(principal string) bool {
	used := q.of[principal]
	if q.Elsewhere != nil {
		used += q.Elsewhere(principal)
	}
	return used >= q.each
}

// Full reports whether a principal has used up its part.
func (q *Quota) Full(principal string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.usedUp(principal)
}

// tryTake is called under mu.
func (q *Quota) tryTake(principal string) error {
	switch {
	case principal != "" && q.of[principal] >= q.each:
		return &QuotaError{true, q.what}
	case q.used >= q.all:
		return &QuotaError{false, q.what}
	}
	q.add(principal, 1)
	return nil
}

// Wait does the same as Take, but waits for up to most until a place is free.
func (q *Quota) Wait(ctx context.Context, principal string, most time.Duration) error {
	q.mu.Lock()
	err := q.takeNow(principal)
	q.mu.Unlock()
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if q.TakeLater(ctx, principal) {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refused++
	return err
}

// TakeLater takes one place as soon as one is free. It returns false if ctx ends first.
func (q *Quota) TakeLater(ctx context.Context, principal string) bool {
	for {
		q.mu.Lock()
		err := q.tryTake(principal)
		if err != nil && q.freed == nil {
			q.freed = make(chan struct{})
		}
		freed := q.freed
		q.mu.Unlock()
		if err == nil {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

// Force takes one place even if the quota is used up.
func (q *Quota) Force(principal string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(principal, 1)
}

// Give returns one place.
func (q *Quota) Give(principal string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(principal, -1)
	if q.freed != nil {
		close(q.freed)
		q.freed = nil
	}
}

// add is called under mu.
func (q *Quota) add(principal string, n int) {
	q.used += n
	if principal == "" {
		return
	}
	if q.of[principal] += n; q.of[principal] == 0 {
		delete(q.of, principal)
	}
}

package server

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"
)

// share bounds what there is at once of one thing: in all, and of one principal, so that
// one who takes too much hurts nobody else.
type share struct {
	what      string
	all, each int
	elsewhere func(principal string) int // what a principal has at other replicas; nil without

	mu    sync.Mutex
	used  int
	of    map[string]int // by principal
	freed chan struct{}  // closed when one is given back; made by who waits for it
}

// newShare bounds a thing to all; each principal to a part of that. Callers without a
// name have all of it.
func newShare(what string, all int, part float64) *share {
	return &share{what: what, all: all, each: max(1, int(math.Ceil(float64(all)*part))), of: map[string]int{}}
}

// fullError says that there is no more of a thing.
type fullError struct {
	what string
	own  bool // of the caller's own share
}

func (e *fullError) Error() string {
	if e.own {
		return fmt.Sprintf("too many %s of one principal at once: try again later", e.what)
	}
	return fmt.Sprintf("too many %s at once: try again later", e.what)
}

// take takes one for a principal, which is given back by give.
func (s *share) take(principal string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if principal != "" && s.usedUp(principal) {
		return &fullError{s.what, true}
	}
	return s.tryTake(principal)
}

// byPrincipal is how much each principal has.
func (s *share) byPrincipal() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.of)
}

// usedUp reports whether a principal has all that it may have, here and elsewhere. It is called under mu.
func (s *share) usedUp(principal string) bool {
	used := s.of[principal]
	if s.elsewhere != nil {
		used += s.elsewhere(principal)
	}
	return used >= s.each
}

// full reports whether a principal has all that it may have.
func (s *share) full(principal string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usedUp(principal)
}

// tryTake is called under mu.
func (s *share) tryTake(principal string) error {
	switch {
	case principal != "" && s.of[principal] >= s.each:
		return &fullError{s.what, true}
	case s.used >= s.all:
		return &fullError{s.what, false}
	}
	s.add(principal, 1)
	return nil
}

// wait takes one as soon as there is one, within a time.
func (s *share) wait(ctx context.Context, principal string, most time.Duration) error {
	err := s.take(principal)
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if !s.takeLater(ctx, principal) {
		return err
	}
	return nil
}

// takeLater takes one as soon as there is one; false when ctx ended before.
func (s *share) takeLater(ctx context.Context, principal string) bool {
	for {
		s.mu.Lock()
		err := s.tryTake(principal)
		if err != nil && s.freed == nil {
			s.freed = make(chan struct{})
		}
		freed := s.freed
		s.mu.Unlock()
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

// force takes one that is there or not.
func (s *share) force(principal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(principal, 1)
}

func (s *share) give(principal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(principal, -1)
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// add is called under mu.
func (s *share) add(principal string, n int) {
	s.used += n
	if principal == "" {
		return
	}
	if s.of[principal] += n; s.of[principal] == 0 {
		delete(s.of, principal)
	}
}

package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"toolctl.dev/toolctl/internal/budget"
)

// Limits are what an [Admission] holds requests and calls to, over all entrances in sum. The zero value of
// a field is its default.
type Limits struct {
	// MaxCalls is the maximum number of calls at once; one more is refused. One that waits for its
	// client does not run. Default: 1024.
	MaxCalls int
	// MaxWaiting is the most calls that wait for their clients, such as for an approval. Default: 1024.
	MaxWaiting int
	// PrincipalShare is the part of each of these limits that one principal may use, above 0 and at
	// most 1. Callers without a name have all. Default: 0.25.
	PrincipalShare float64
	// MemoryBudget is how many bytes all that is decoded at once may take; a request beyond it
	// waits a little and is refused with status 503. Default: 256 MiB.
	MemoryBudget int64
	// MaxResultBytes is the largest result of a call, prompt or resource that clients get;
	// a call with a larger one is a failed call that says so. Default: 16 MiB.
	MaxResultBytes int64
	// MaxBody is the largest request in bytes, where its route allows no less. Default: 4 MiB.
	MaxBody int64
	// MaxRequests is the most requests that are being read at once, and the most that are being
	// answered, without calls and streams; one more gets status 503 and Retry-After. Strangers have an
	// eighth of them to themselves. Default: 512.
	MaxRequests int
	// MaxStreams is the most open streams of notifications and events. Default: 1024.
	MaxStreams int
	// Rate bounds the requests of one principal, without authentication those of one
	// address; one more gets status 429 and Retry-After. Default: no bound.
	Rate Rate
	// RateCounters count what Rate bounds over all servers that use them; while they fail, requests get
	// status 503. Requests of strangers count in this server alone. Default: so do all.
	RateCounters RateCounters
	// Now is the clock of the rates. Default: time.Now.
	Now func() time.Time
}

// Default limits.
const (
	DefaultMaxCalls       = 1024
	DefaultPrincipalShare = 0.25
	DefaultMemoryBudget   = 256 << 20
	DefaultMaxResult      = 16 << 20
	DefaultMaxBody        = 4 << 20

	defaultMaxWaiting  = 1024
	defaultMaxRequests = 512
	defaultMaxStreams  = 1024

	maxProbes    = 64 // at once
	strangerPart = 8  // of MaxRequests
)

func (l Limits) withDefaults() Limits {
	set := func(n *int, d int) {
		if *n <= 0 {
			*n = d
		}
	}
	set(&l.MaxCalls, DefaultMaxCalls)
	set(&l.MaxWaiting, defaultMaxWaiting)
	set(&l.MaxRequests, defaultMaxRequests)
	set(&l.MaxStreams, defaultMaxStreams)
	if l.PrincipalShare <= 0 || l.PrincipalShare > 1 {
		l.PrincipalShare = DefaultPrincipalShare
	}
	l.MemoryBudget = cmp.Or(max(0, l.MemoryBudget), DefaultMemoryBudget)
	l.MaxResultBytes = cmp.Or(max(0, l.MaxResultBytes), DefaultMaxResult)
	l.MaxBody = cmp.Or(max(0, l.MaxBody), DefaultMaxBody)
	if l.Now == nil {
		l.Now = time.Now
	}
	return l
}

// Admission holds everything that a server is asked for to one set of limits, whichever entrance it comes
// by. Make it with [New]. All methods may be called by many goroutines at once.
type Admission struct {
	// Calls are the calls of tools, and what takes as long.
	Calls *Calls
	// Requests are those that are being answered, without calls and streams, and Streams those that last.
	Requests, Streams *Quota

	limits    Limits
	memory    *budget.Budget
	throttle  *throttle
	rates     *rates
	reading   *Quota // requests that are being read
	pieces    *Quota // bytes of large requests that are being read, in pieces of readPiece
	strangers *Quota // requests of those whom nobody has verified
	probes    *Quota

	mu      sync.Mutex
	quotas  []*Quota
	refused map[string]int64 // by reason, besides those of the quotas
}

// New returns an admission with its limits.
func New(l Limits) *Admission {
	l = l.withDefaults()
	a := &Admission{limits: l, memory: budget.New(l.MemoryBudget), throttle: newThrottle(), rates: newRates(l.Rate, l.RateCounters, l.Now), refused: map[string]int64{}}
	for _, reason := range []string{reasonRate, reasonMemory, reasonResult, reasonSize, reasonTimeout, reasonStopping} {
		a.refused[reason] = 0 // which says that it has not happened, to who watches
	}
	a.Calls = NewCalls(a.Quota("calls", l.MaxCalls), a.Quota("calls that wait for their clients", l.MaxWaiting))
	a.Requests, a.Streams = a.Quota("requests", l.MaxRequests), a.Quota("streams", l.MaxStreams)
	a.reading = a.Quota("unread requests", l.MaxRequests)
	a.strangers = a.Quota("requests without a token", max(1, l.MaxRequests/strangerPart))
	a.probes = a.Quota("probes", maxProbes)
	// What is held of requests that are not read to their end is a quarter of the memory budget; one
	// principal may always send one request.
	largest := int(l.MaxBody/readPiece) + 1
	a.pieces = a.Quota("large requests", max(largest, int(l.MemoryBudget/4/readPiece)))
	a.pieces.each = max(a.pieces.each, largest)
	return a
}

// Limits returns the limits with their defaults.
func (a *Admission) Limits() Limits { return a.limits }

// Quota returns a quota of a thing, of which each principal may use Limits.PrincipalShare, and which
// [Admission.Snapshot] knows by its name.
func (a *Admission) Quota(what string, all int) *Quota {
	q := NewQuota(what, all, a.limits.PrincipalShare)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quotas = append(a.quotas, q)
	return q
}

// Memory takes of the memory budget what it costs to decode a text, unless the request of ctx has it
// already, and returns the context of the work; release gives it back.
func (a *Admission) Memory(ctx context.Context, principal string, text []byte) (_ context.Context, release func(), err error) {
	if budget.Bounds(ctx) {
		return ctx, func() {}, nil
	}
	share, err := a.takeMemory(ctx, principal, budget.Weigh(text))
	if err != nil {
		return nil, nil, err
	}
	return budget.With(ctx, share), share.Release, nil
}

func (a *Admission) takeMemory(ctx context.Context, principal string, n int64) (*budget.Share, error) {
	share, err := a.memory.TakeSoon(ctx, principal, n)
	if err != nil {
		a.count(reasonMemory)
		if !errors.Is(err, budget.ErrTooLarge) {
			err = budget.ErrFull
		}
		return nil, err
	}
	return share, nil
}

// ResultError says that a result is larger than Limits.MaxResultBytes.
type ResultError struct{ Size, Max int64 }

func (e *ResultError) Error() string {
	return fmt.Sprintf("the call was made, but its result of %d bytes exceeds the limit of %d; ask for less, such as one page", e.Size, e.Max)
}

// Result returns a [ResultError] when a result of so many bytes must not be passed on.
func (a *Admission) Result(n int64) error {
	if n <= a.limits.MaxResultBytes {
		return nil
	}
	a.count(reasonResult)
	return &ResultError{n, a.limits.MaxResultBytes}
}

// RefusedError says that a limit was reached before anything was done: the caller may try again later.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// Reasons of refusals, besides the names of quotas.
const (
	reasonRate     = "rate"
	reasonMemory   = "memory"
	reasonResult   = "result size"
	reasonSize     = "request size"
	reasonTimeout  = "request timeout"
	reasonStopping = "stopping"
)

func (a *Admission) count(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused[reason]++
}

// Snapshot is what is in use, and what was refused since the start.
type Snapshot struct {
	// Quotas are by their names, such as "calls", "requests" and "streams".
	Quotas map[string]Usage
	// Memory is of the memory budget, in bytes.
	Memory Usage
	// Refused counts by reason: the name of a quota, or "rate", "memory", "result size", "request size",
	// "request timeout" and "stopping".
	Refused map[string]int64
}

// Usage is how much of a limit is in use.
type Usage struct{ InUse, Max int64 }

// Snapshot returns what is in use now.
func (a *Admission) Snapshot() Snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Snapshot{Quotas: map[string]Usage{}, Memory: Usage{a.memory.Used(), a.memory.Total()}, Refused: map[string]int64{}}
	for reason, n := range a.refused {
		s.Refused[reason] = n
	}
	for _, q := range a.quotas {
		used, refused := q.state()
		u := s.Quotas[q.what]
		s.Quotas[q.what] = Usage{u.InUse + used, u.Max + int64(q.all)}
		s.Refused[q.what] += refused
	}
	return s
}

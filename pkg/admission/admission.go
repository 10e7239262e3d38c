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

// Limits are the limits of an [Admission], which apply to the sum of all entrances. The zero value of a
// field means its default.
type Limits struct {
	// MaxCalls is the maximum number of concurrent calls; further calls are refused. A call that waits for its
	// client does not count. Default: 1024.
	MaxCalls int
	// MaxWaiting is the maximum number of calls that wait for their clients, such as for an approval. Default:
	// 1024.
	MaxWaiting int
	// PrincipalShare is the part of each of these limits that one principal may use, above 0 and at most 1.
	// Callers without a name may use the whole limit. Default: 0.25.
	PrincipalShare float64
	// MemoryBudget is the maximum number of bytes for all data that is being decoded. A request beyond it waits
	// briefly and is then refused with status 503. Default: 256 MiB.
	MemoryBudget int64
	// MaxResultBytes is the maximum size of the result of a call, prompt or resource. A call with a larger
	// result fails with an error that says so. Default: 16 MiB.
	MaxResultBytes int64
	// MaxBody is the maximum size of a request in bytes, unless its route sets a smaller one. Default: 4 MiB.
	MaxBody int64
	// MaxRequests is the maximum number of requests that are being read, and of requests that are being
	// answered, without calls and streams; further requests get status 503 and Retry-After. Strangers have
	// their own eighth of this number. Default: 512.
	MaxRequests int
	// MaxStreams is the maximum number of open streams of notifications and events. Default: 1024.
	MaxStreams int
	// Rate limits the requests of one principal, or without authentication those of one address; further
	// requests get status 429 and Retry-After. Default: no limit.
	Rate Rate
	// RateCounters count the requests for Rate across all servers that use the same counters. While they fail,
	// requests get status 503. This server alone counts the requests of strangers. Default: this server alone
	// counts all requests.
	RateCounters RateCounters
	// Now is the clock for the rates. Default: time.Now.
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

	maxProbes    = 64 // concurrent requests
	strangerPart = 8  // strangers get one part in 8 of MaxRequests
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

// Admission applies one set of limits to all requests of a server, whatever their entrance. Create it with
// [New]. All methods are safe for concurrent use.
type Admission struct {
	// Calls limits tool calls and other requests that may take as long.
	Calls *Calls
	// Requests limits the requests that are being answered, without calls and streams. Streams limits the open
	// streams.
	Requests, Streams *Quota

	limits    Limits
	memory    *budget.Budget
	throttle  *throttle
	rates     *rates
	reading   *Quota // requests that are being read
	pieces    *Quota // bytes of large requests that are being read, in units of readPiece
	strangers *Quota // requests of unverified senders
	probes    *Quota

	mu      sync.Mutex
	quotas  []*Quota
	refused map[string]int64 // by reason, without the refusals of the quotas
}

// New returns an admission with the given limits.
func New(l Limits) *Admission {
	l = l.withDefaults()
	a := &Admission{limits: l, memory: budget.New(l.MemoryBudget), throttle: newThrottle(), rates: newRates(l.Rate, l.RateCounters, l.Now), refused: map[string]int64{}}
	for _, reason := range []string{reasonRate, reasonMemory, reasonResult, reasonSize, reasonTimeout, reasonStopping} {
		a.refused[reason] = 0 // so that metrics show a reason before its first refusal
	}
	a.Calls = NewCalls(a.Quota("calls", l.MaxCalls), a.Quota("calls that wait for their clients", l.MaxWaiting))
	a.Requests, a.Streams = a.Quota("requests", l.MaxRequests), a.Quota("streams", l.MaxStreams)
	a.reading = a.Quota("unread requests", l.MaxRequests)
	a.strangers = a.Quota("requests without a token", max(1, l.MaxRequests/strangerPart))
	a.probes = a.Quota("probes", maxProbes)
	// Partly read requests may use a quarter of the memory budget. The quota is large enough that one principal
	// can always send one request.
	largest := int(l.MaxBody/readPiece) + 1
	a.pieces = a.Quota("large requests", max(largest, int(l.MemoryBudget/4/readPiece)))
	a.pieces.each = max(a.pieces.each, largest)
	return a
}

// Limits returns the limits, with defaults filled in.
func (a *Admission) Limits() Limits { return a.limits }

// Quota returns a quota of all things, named what. Each principal may use Limits.PrincipalShare of it.
// [Admission.Snapshot] reports it under its name.
func (a *Admission) Quota(what string, all int) *Quota {
	q := NewQuota(what, all, a.limits.PrincipalShare)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quotas = append(a.quotas, q)
	return q
}

// Memory reserves the memory to decode a text, unless the request of ctx has reserved it already. It
// returns the context for the work. release returns the memory to the budget.
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

// ResultError means that a result is larger than Limits.MaxResultBytes.
type ResultError struct{ Size, Max int64 }

func (e *ResultError) Error() string {
	return fmt.Sprintf("the call was made, but its result of %d bytes exceeds the limit of %d; ask for less, such as one page", e.Size, e.Max)
}

// Result returns a [ResultError] if a result of n bytes is too large to pass on.
func (a *Admission) Result(n int64) error {
	if n <= a.limits.MaxResultBytes {
		return nil
	}
	a.count(reasonResult)
	return &ResultError{n, a.limits.MaxResultBytes}
}

// RefusedError means that a limit was reached before anything was done, so the caller may try again later.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// Reasons for refusals, besides the names of quotas.
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

// Snapshot holds the current usage, and the refusals since the start.
type Snapshot struct {
	// Quotas holds the usage by name of the quota, such as "calls", "requests" and "streams".
	Quotas map[string]Usage
	// Memory is the usage of the memory budget in bytes.
	Memory Usage
	// Refused holds the number of refusals by reason: the name of a quota, or "rate", "memory", "result size",
	// "request size", "request timeout" and "stopping".
	Refused map[string]int64
}

// Usage is how much of a limit is in use.
type Usage struct{ InUse, Max int64 }

// Snapshot returns the current usage.
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

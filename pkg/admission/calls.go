package admission

import (
	"context"
	"errors"
	"sync"
)

// ErrStopping means that the server accepts no more calls.
var ErrStopping = errors.New("the server is stopping")

// Calls applies the quotas for calls, and counts the calls so that a stopping server can wait for them.
type Calls struct {
	// Running and Waiting are the quotas. Each call counts in one of the two.
	Running, Waiting *Quota

	stopped context.Context // ends when the running calls must end
	stop    context.CancelCauseFunc
	refused context.Context // ends when calls are refused, before stopped
	refuse  context.CancelFunc

	mu       sync.Mutex
	open     int
	leaving  bool
	draining bool
	idle     chan struct{}  // closed while no call is active
	requests sync.WaitGroup // HTTP requests without streams, whose responses are written after their calls
}

// NewCalls returns Calls with a quota for running calls and a quota for calls that wait for their clients.
func NewCalls(running, waiting *Quota) *Calls {
	c := &Calls{Running: running, Waiting: waiting, idle: make(chan struct{})}
	close(c.idle)
	c.stopped, c.stop = context.WithCancelCause(context.Background())
	c.refused, c.refuse = context.WithCancel(c.stopped)
	return c
}

// OnStop calls f when running calls are cancelled, until forget is called.
func (c *Calls) OnStop(f func()) (forget func() bool) { return context.AfterFunc(c.stopped, f) }

// OnRefuse calls f when the server stops accepting calls, until forget is called.
func (c *Calls) OnRefuse(f func()) (forget func() bool) { return context.AfterFunc(c.refused, f) }

// Enter counts a request until Leave. It returns false once the server stops.
func (c *Calls) Enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return false
	}
	c.requests.Add(1)
	return true
}

// Leave undoes Enter when a request has been answered.
func (c *Calls) Leave() { c.requests.Done() }

// WaitRequests waits until every request counted by Enter has been answered.
func (c *Calls) WaitRequests() { c.requests.Wait() }

// Call is one call of a principal.
type Call struct {
	calls     *Calls
	principal string

	mu   sync.Mutex
	asks int // number of questions to the client that are open
}

// Begin starts a call, which uses one place of the quota until End. The error is [ErrStopping] or a
// [QuotaError].
func (c *Calls) Begin(principal string) (*Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return nil, ErrStopping
	}
	if err := c.Running.Take(principal); err != nil {
		return nil, err
	}
	if c.open++; c.open == 1 {
		c.idle = make(chan struct{})
	}
	return &Call{calls: c, principal: principal}, nil
}

// End ends the call.
func (t *Call) End() {
	c := t.calls
	c.Running.Give(t.principal)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open--; c.open == 0 {
		close(c.idle)
	}
}

// WhileWaiting calls ask, which waits for the client. Until ask returns, the call counts as waiting.
func (t *Call) WhileWaiting(ctx context.Context, ask func() error) error {
	t.mu.Lock()
	if t.asks == 0 {
		if err := t.calls.Waiting.Take(t.principal); err != nil {
			t.mu.Unlock()
			return err
		}
		t.calls.Running.Give(t.principal)
	}
	t.asks++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.asks--; t.asks == 0 {
			if !t.calls.Running.TakeLater(ctx, t.principal) {
				t.calls.Running.Force(t.principal) // may exceed the quota briefly, until the call ends
			}
			t.calls.Waiting.Give(t.principal)
		}
	}()
	return ask()
}

// Announce announces that calls will be refused soon.
func (c *Calls) Announce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
}

// Leaving reports whether calls are refused, or will be soon.
func (c *Calls) Leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving || c.draining
}

// Refuse refuses all later calls. The returned channel is closed when no call is running.
func (c *Calls) Refuse() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	c.refuse()
	return c.idle
}

// Refused returns a channel that is closed once calls are refused.
func (c *Calls) Refused() <-chan struct{} { return c.refused.Done() }

// Stop cancels the running calls.
func (c *Calls) Stop() { c.stop(ErrStopping) }

// Stopping reports whether calls are refused.
func (c *Calls) Stopping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

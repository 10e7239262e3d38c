package registry

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// MemoryApprovals are [Approvals] in memory, which a restart loses. The zero value is ready for use.
type MemoryApprovals struct {
	mu      sync.Mutex
	calls   []v1.PendingCall // in the order of arrival
	decided chan struct{}    // closed by the next decision; nil without waiters
}

// keepApprovals is the number of used and expired calls that are kept for lists.
const keepApprovals = 1000

// TakeApproval implements [Approvals].
func (m *MemoryApprovals) TakeApproval(_ context.Context, p v1.PendingCall, name string) (v1.PendingCall, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := p.Created
	pending, ofSession, ofPrincipal := 0, 0, 0
	for i := range slices.Backward(m.calls) {
		kept := &m.calls[i]
		state := kept.StateAt(now)
		if state == v1.ApprovalPending {
			pending++
			if kept.Principal == p.Principal {
				ofPrincipal++
				if kept.Session == p.Session {
					ofSession++
				}
			}
		}
		if !p.Repeats(kept, name) || over(state) {
			continue
		}
		found := *kept
		if state == v1.ApprovalApproved {
			kept.State = v1.ApprovalUsed
		}
		return found, nil
	}
	switch {
	case name != "":
		return v1.PendingCall{}, &v1.NotFoundError{Kind: "Approval", Name: name}
	case pending >= v1.MaxPendingCalls || ofSession >= v1.MaxPendingCallsPerSession,
		p.Principal != "" && ofPrincipal >= v1.MaxPendingCallsPerPrincipal:
		return v1.PendingCall{}, v1.ErrPendingFull
	}
	m.calls = append(m.calls, p)
	m.forget(now)
	return p, nil
}

func over(state string) bool { return state == v1.ApprovalUsed || state == v1.ApprovalExpired }

// forget drops the oldest used and expired calls.
func (m *MemoryApprovals) forget(now time.Time) {
	drop := -keepApprovals
	for i := range m.calls {
		if over(m.calls[i].StateAt(now)) {
			drop++
		}
	}
	m.calls = slices.DeleteFunc(m.calls, func(c v1.PendingCall) bool {
		if drop <= 0 || !over(c.StateAt(now)) {
			return false
		}
		drop--
		return true
	})
}

// Approval returns the call with an ID. The error is a [v1.NotFoundError].
func (m *MemoryApprovals) Approval(_ context.Context, id string) (v1.PendingCall, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.find(id)
	if err != nil {
		return v1.PendingCall{}, err
	}
	return *p, nil
}

func (m *MemoryApprovals) find(id string) (*v1.PendingCall, error) {
	i := slices.IndexFunc(m.calls, func(c v1.PendingCall) bool { return c.ID == id })
	if i < 0 {
		return nil, &v1.NotFoundError{Kind: "Approval", Name: id}
	}
	return &m.calls[i], nil
}

// ListApprovals returns the calls in the order of arrival.
func (m *MemoryApprovals) ListApprovals(context.Context) ([]v1.PendingCall, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls), nil
}

// CountPending returns the number of calls that are pending at a time.
func (m *MemoryApprovals) CountPending(_ context.Context, now time.Time) (pending int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.calls {
		if m.calls[i].StateAt(now) == v1.ApprovalPending {
			pending++
		}
	}
	return pending, nil
}

// DecideApproval records a decision. The error is a [v1.NotFoundError], or a [v1.ApprovalError] for a call that is no
// longer pending.
func (m *MemoryApprovals) DecideApproval(_ context.Context, id string, d v1.Decision, now time.Time) (v1.PendingCall, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.find(id)
	if err != nil {
		return v1.PendingCall{}, err
	}
	decided := *p
	if err := decided.Decide(d, now); err != nil {
		return v1.PendingCall{}, err
	}
	*p = decided
	if m.decided != nil {
		close(m.decided)
		m.decided = nil
	}
	return decided, nil
}

// AwaitApproval waits until the call with an ID is no longer pending and returns it. The error is a [v1.NotFoundError],
// or the error of ctx.
func (m *MemoryApprovals) AwaitApproval(ctx context.Context, id string) (v1.PendingCall, error) {
	for {
		m.mu.Lock()
		if m.decided == nil {
			m.decided = make(chan struct{})
		}
		decided := m.decided
		m.mu.Unlock()
		p, err := m.Approval(ctx, id)
		if err != nil || p.StateAt(time.Now()) != v1.ApprovalPending {
			return p, err
		}
		select {
		case <-ctx.Done():
			return v1.PendingCall{}, ctx.Err()
		case <-decided:
		}
	}
}

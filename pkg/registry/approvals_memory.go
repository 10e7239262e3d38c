package registry

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// MemoryApprovals is [Approvals] in memory. Its zero value is ready. Of the calls
// that wait no more it keeps the newest 1,000.
type MemoryApprovals struct {
	mu    sync.Mutex
	calls []v1.PendingCall // in the order in which they came
}

var _ Approvals = (*MemoryApprovals)(nil)

// TakeApproval implements [Approvals].
func (m *MemoryApprovals) TakeApproval(_ context.Context, p v1.PendingCall, name string) (v1.PendingCall, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := p.Created
	waiting, ofSession, ofPrincipal := 0, 0, 0
	for i := len(m.calls) - 1; i >= 0; i-- {
		kept := &m.calls[i]
		state := kept.StateAt(now)
		if state == v1.ApprovalPending {
			waiting++
			if kept.Principal == p.Principal {
				ofPrincipal++
				if kept.Session == p.Session {
					ofSession++
				}
			}
		}
		if !p.Repeats(kept, name) || state == v1.ApprovalUsed || state == v1.ApprovalExpired {
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
	case waiting >= v1.MaxPendingCalls || ofSession >= v1.MaxPendingCallsPerSession,
		p.Principal != "" && ofPrincipal >= v1.MaxPendingCallsPerPrincipal:
		return v1.PendingCall{}, v1.ErrPendingFull
	}
	m.calls = append(m.calls, p)
	m.forget(now)
	return p, nil
}

// forget drops the oldest calls that wait no more.
func (m *MemoryApprovals) forget(now time.Time) {
	const most = 1000
	done := 0
	for i := range m.calls {
		if s := m.calls[i].StateAt(now); s == v1.ApprovalUsed || s == v1.ApprovalExpired {
			done++
		}
	}
	m.calls = slices.DeleteFunc(m.calls, func(c v1.PendingCall) bool {
		s := c.StateAt(now)
		if done <= most || s != v1.ApprovalUsed && s != v1.ApprovalExpired {
			return false
		}
		done--
		return true
	})
}

// List returns the calls that are kept, the newest last.
func (m *MemoryApprovals) List() []v1.PendingCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// Decide enters a decision at a time. The error is a [v1.NotFoundError] or a
// [v1.ApprovalError].
func (m *MemoryApprovals) Decide(id string, d v1.Decision, now time.Time) (v1.PendingCall, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.calls {
		if m.calls[i].ID == id {
			err := m.calls[i].Decide(d, now)
			return m.calls[i], err
		}
	}
	return v1.PendingCall{}, &v1.NotFoundError{Kind: "Approval", Name: id}
}

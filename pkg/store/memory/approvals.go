package memory

import (
	"context"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// TakeApproval implements [store.Approvals].
func (s *Store) TakeApproval(ctx context.Context, p v1.PendingCall, name string) (found v1.PendingCall, err error) {
	err = s.write(ctx, func() error {
		found, err = s.take(p, name)
		return err
	})
	return found, err
}

func (s *Store) take(p v1.PendingCall, name string) (v1.PendingCall, error) {
	now := p.Created
	waiting, ofSession, ofPrincipal := 0, 0, 0
	for i := len(s.calls) - 1; i >= 0; i-- {
		kept := &s.calls[i]
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
	s.calls = append(s.calls, p)
	s.forget(now)
	return p, nil
}

// forget drops the oldest calls that wait no more.
func (s *Store) forget(now time.Time) {
	const most = 1000
	done := 0
	for i := range s.calls {
		if state := s.calls[i].StateAt(now); state == v1.ApprovalUsed || state == v1.ApprovalExpired {
			done++
		}
	}
	s.calls = slices.DeleteFunc(s.calls, func(c v1.PendingCall) bool {
		state := c.StateAt(now)
		if done <= most || state != v1.ApprovalUsed && state != v1.ApprovalExpired {
			return false
		}
		done--
		return true
	})
}

// Approval implements [store.Approvals].
func (s *Store) Approval(ctx context.Context, id string) (p v1.PendingCall, err error) {
	err = s.read(ctx, func() error {
		i, err := s.call(id)
		if err == nil {
			p = s.calls[i]
		}
		return err
	})
	return p, err
}

func (s *Store) call(id string) (int, error) {
	i := slices.IndexFunc(s.calls, func(c v1.PendingCall) bool { return c.ID == id })
	if i < 0 {
		return i, &v1.NotFoundError{Kind: "Approval", Name: id}
	}
	return i, nil
}

// ListApprovals implements [store.Approvals].
func (s *Store) ListApprovals(ctx context.Context) (calls []v1.PendingCall, err error) {
	err = s.read(ctx, func() error {
		calls = slices.Clone(s.calls)
		return nil
	})
	return calls, err
}

// CountPending implements [store.Approvals].
func (s *Store) CountPending(ctx context.Context, now time.Time) (pending int, err error) {
	err = s.read(ctx, func() error {
		for i := range s.calls {
			if s.calls[i].StateAt(now) == v1.ApprovalPending {
				pending++
			}
		}
		return nil
	})
	return pending, err
}

// DecideApproval implements [store.Approvals].
func (s *Store) DecideApproval(ctx context.Context, id string, d v1.Decision, now time.Time) (p v1.PendingCall, err error) {
	err = s.write(ctx, func() error {
		i, err := s.call(id)
		if err != nil {
			return err
		}
		decided := s.calls[i]
		if err := decided.Decide(d, now); err != nil {
			return err
		}
		if err := s.append(chain.Decision(&decided, d.Approved, now)); err != nil {
			return err
		}
		s.calls[i], p = decided, decided
		return nil
	})
	if err == nil {
		s.changed.Notify()
	}
	return p, err
}

// AwaitApproval implements [store.Approvals].
func (s *Store) AwaitApproval(ctx context.Context, id string) (v1.PendingCall, error) {
	return watch.Decided(ctx, &s.changed, id, s.Approval)
}

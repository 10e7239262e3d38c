package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// keepApprovals is the number of calls no longer waiting that are kept for lists.
const keepApprovals = 1000

// TakeApproval implements [store.Approvals].
func (m Methods) TakeApproval(ctx context.Context, p v1.PendingCall, name string) (found v1.PendingCall, err error) {
	began := time.Now()
	err = m.b.Write(ctx, func(tx Tx) error {
		if err := tx.Lock("approvals"); err != nil { // so that two calls cannot use the same approval
			return err
		}
		now := p.Created.Add(time.Since(began).Truncate(time.Second)) // adds the time spent waiting for the lock
		where, args := "id = $1", []any{name}
		if name == "" {
			where = "subject = $1 AND principal = $2 AND (principal <> '' OR session = $3) AND state <> $4 AND expires > $5 ORDER BY " + m.d.Place + " DESC LIMIT 1"
			args = []any{p.Subject, p.Principal, p.Session, v1.ApprovalUsed, now.UnixMicro()}
		}
		there, err := approvals(tx, " WHERE "+where, args...)
		if err != nil {
			return err
		}
		if len(there) > 0 && p.Repeats(&there[0], name) {
			found = there[0]
			switch found.StateAt(now) {
			case v1.ApprovalPending, v1.ApprovalDenied:
				return nil
			case v1.ApprovalApproved:
				used := found
				used.State = v1.ApprovalUsed
				return updateApproval(tx, &used)
			}
		}
		if name != "" {
			return noApproval(name)
		}
		found = p
		return m.insertApproval(tx, &p)
	})
	if err != nil {
		return v1.PendingCall{}, err
	}
	return found, nil
}

func (m Methods) insertApproval(tx Tx, p *v1.PendingCall) error {
	now := p.Created.UnixMicro()
	var all, ofSession, ofPrincipal, kept int
	err := One(tx, []any{&all, &ofSession, &ofPrincipal, &kept}, `SELECT count(*) FILTER (WHERE waits), count(*) FILTER (WHERE waits AND principal = $4 AND session = $3),
		count(*) FILTER (WHERE waits AND principal = $4), count(*)
		FROM (SELECT principal, session, state = $1 AND expires > $2 AS waits FROM toolctl_approvals) calls`,
		v1.ApprovalPending, now, p.Session, p.Principal)
	if err != nil {
		return err
	}
	if all >= v1.MaxPendingCalls || ofSession >= v1.MaxPendingCallsPerSession || p.Principal != "" && ofPrincipal >= v1.MaxPendingCallsPerPrincipal {
		return plan.Refuse(v1.ErrPendingFull)
	}
	record, err := jsontext.Marshal(p)
	if err != nil {
		return err
	}
	redact, err := jsontext.Marshal(p.Redact)
	if err != nil {
		return err
	}
	_, err = tx.Exec("INSERT INTO toolctl_approvals (id, subject, principal, session, state, created, expires, record, redact) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
		p.ID, p.Subject, p.Principal, p.Session, p.State, now, p.Expires.UnixMicro(), record, redact)
	if err == nil && kept-all >= keepApprovals {
		_, err = tx.Exec(`DELETE FROM toolctl_approvals WHERE id IN
			(SELECT id FROM toolctl_approvals WHERE state = $1 OR expires <= $2 ORDER BY `+m.d.Place+` DESC LIMIT $3 OFFSET $4)`, v1.ApprovalUsed, now, kept, keepApprovals)
	}
	if err != nil {
		return err
	}
	return tx.Tell("approvals")
}

func updateApproval(tx Tx, p *v1.PendingCall) error {
	record, err := jsontext.Marshal(p)
	if err != nil {
		return err
	}
	var edited any // NULL if the arguments were not edited
	if p.EditedArgs != nil {
		edited = []byte(p.EditedArgs)
	}
	_, err = tx.Exec("UPDATE toolctl_approvals SET state = $1, expires = $2, record = $3, edited = $4 WHERE id = $5",
		p.State, p.Expires.UnixMicro(), record, edited, p.ID)
	if err != nil {
		return err
	}
	return tx.Tell("approvals")
}

// approvals reads the calls that match a condition.
func approvals(tx Tx, where string, args ...any) ([]v1.PendingCall, error) {
	return all(tx, func(row Rows) (p v1.PendingCall, err error) {
		var record, redact, edited []byte
		var subject string
		if err := row.Scan(&record, &redact, &edited, &subject); err != nil {
			return p, err
		}
		if err := errors.Join(json.Unmarshal(record, &p), json.Unmarshal(redact, &p.Redact)); err != nil {
			return p, fmt.Errorf("%w: approvals: %w", store.ErrDamaged, err)
		}
		p.Subject = subject
		if edited != nil {
			p.EditedArgs = edited
		}
		return p, nil
	}, "SELECT record, redact, edited, subject FROM toolctl_approvals"+where, args...)
}

func approval(tx Tx, id string) (v1.PendingCall, error) {
	found, err := approvals(tx, " WHERE id = $1", id)
	if err != nil {
		return v1.PendingCall{}, err
	}
	if len(found) == 0 {
		return v1.PendingCall{}, noApproval(id)
	}
	return found[0], nil
}

func noApproval(id string) error {
	return plan.Refuse(&v1.NotFoundError{Kind: "Approval", Name: id})
}

// Approval implements [store.Approvals].
func (m Methods) Approval(ctx context.Context, id string) (p v1.PendingCall, err error) {
	err = m.b.Read(ctx, func(tx Tx) (err error) {
		p, err = approval(tx, id)
		return err
	})
	return p, err
}

// ListApprovals implements [store.Approvals].
func (m Methods) ListApprovals(ctx context.Context) (calls []v1.PendingCall, err error) {
	err = m.b.Read(ctx, func(tx Tx) (err error) {
		calls, err = approvals(tx, " ORDER BY "+m.d.Place)
		return err
	})
	return calls, err
}

// CountPending implements [store.Approvals].
func (m Methods) CountPending(ctx context.Context, now time.Time) (pending int, err error) {
	err = m.b.Read(ctx, func(tx Tx) error {
		return One(tx, []any{&pending}, "SELECT count(*) FROM toolctl_approvals WHERE state = $1 AND expires > $2", v1.ApprovalPending, now.UnixMicro())
	})
	return pending, err
}

// DecideApproval implements [store.Approvals].
func (m Methods) DecideApproval(ctx context.Context, id string, d v1.Decision, now time.Time) (p v1.PendingCall, err error) {
	began := time.Now()
	err = m.b.Write(ctx, func(tx Tx) error {
		if err := tx.Lock("approvals"); err != nil {
			return err
		}
		if p, err = approval(tx, id); err != nil {
			return err
		}
		if p.StateAt(now.Add(time.Since(began).Truncate(time.Second))) == v1.ApprovalExpired { // includes the lock wait
			return plan.Refuse(&v1.ApprovalError{ID: id, State: v1.ApprovalExpired, By: p.By})
		}
		if err := p.Decide(d, now); err != nil {
			return plan.Refuse(err)
		}
		if err := updateApproval(tx, &p); err != nil {
			return err
		}
		return tx.AddAudit(chain.Decision(&p, d.Approved, now))
	})
	if err != nil {
		return v1.PendingCall{}, err
	}
	m.b.Notify()
	return p, nil
}

// AwaitApproval implements [store.Approvals].
func (m Methods) AwaitApproval(ctx context.Context, id string) (v1.PendingCall, error) {
	return watch.Decided(ctx, m.b.Watched(), id, m.Approval)
}

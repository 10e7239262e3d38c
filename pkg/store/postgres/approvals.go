package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// keepApprovals is how many calls that wait no more are kept for lists.
const keepApprovals = 1000

const approvalColumns = "record, redact, edited, subject FROM toolctl_approvals"

// TakeApproval implements [store.Approvals].
func (s *Store) TakeApproval(ctx context.Context, p v1.PendingCall, name string) (found v1.PendingCall, err error) {
	p.Subject = text(p.Subject)
	err = s.write(ctx, func(tx pgx.Tx) error {
		if _, err := next(ctx, tx, "approvals", 0); err != nil { // alone: two that repeat a call must not both have it
			return err
		}
		var row pgx.Row
		if name != "" {
			row = tx.QueryRow(ctx, "SELECT "+approvalColumns+" WHERE id = $1", text(name))
		} else {
			row = tx.QueryRow(ctx, "SELECT "+approvalColumns+` WHERE subject = $1 AND principal = $2 AND (principal <> '' OR session = $3)
				AND state <> $4 AND expires > $5 ORDER BY place DESC LIMIT 1`, p.Subject, text(p.Principal), text(p.Session), v1.ApprovalUsed, p.Created.UnixMicro())
		}
		var err error
		found, err = scanApproval(row)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		state := ""
		if err == nil && p.Repeats(&found, name) {
			state = found.StateAt(p.Created)
		}
		switch state {
		case v1.ApprovalPending, v1.ApprovalDenied:
			return nil
		case v1.ApprovalApproved:
			used := found
			used.State = v1.ApprovalUsed
			return updateApproval(ctx, tx, &used)
		}
		if name != "" {
			return plan.Refuse(&v1.NotFoundError{Kind: "Approval", Name: name})
		}
		found = p
		return insertApproval(ctx, tx, &p)
	})
	if err != nil {
		return v1.PendingCall{}, err
	}
	return found, nil
}

func insertApproval(ctx context.Context, tx pgx.Tx, p *v1.PendingCall) error {
	now := p.Created.UnixMicro()
	var all, ofSession, ofPrincipal, kept int
	err := tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE waits), count(*) FILTER (WHERE waits AND principal = $4 AND session = $3),
		count(*) FILTER (WHERE waits AND principal = $4), count(*)
		FROM (SELECT principal, session, state = $1 AND expires > $2 AS waits FROM toolctl_approvals) calls`,
		v1.ApprovalPending, now, text(p.Session), text(p.Principal)).Scan(&all, &ofSession, &ofPrincipal, &kept)
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
	_, err = tx.Exec(ctx, "INSERT INTO toolctl_approvals (id, subject, principal, session, state, created, expires, record, redact) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
		p.ID, p.Subject, text(p.Principal), text(p.Session), p.State, now, p.Expires.UnixMicro(), record, redact)
	if err == nil && kept-all >= keepApprovals {
		_, err = tx.Exec(ctx, `DELETE FROM toolctl_approvals WHERE id IN
			(SELECT id FROM toolctl_approvals WHERE state = $1 OR expires <= $2 ORDER BY place DESC OFFSET $3)`, v1.ApprovalUsed, now, keepApprovals)
	}
	if err != nil {
		return err
	}
	return changed(ctx, tx, "approvals")
}

func updateApproval(ctx context.Context, tx pgx.Tx, p *v1.PendingCall) error {
	record, err := jsontext.Marshal(p)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE toolctl_approvals SET state = $1, expires = $2, record = $3, edited = $4 WHERE id = $5",
		p.State, p.Expires.UnixMicro(), record, []byte(p.EditedArgs), p.ID)
	if err != nil {
		return err
	}
	return changed(ctx, tx, "approvals")
}

// scanApproval reads one row of approvalColumns.
func scanApproval(row pgx.Row) (p v1.PendingCall, err error) {
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
}

// Approval implements [store.Approvals].
func (s *Store) Approval(ctx context.Context, id string) (p v1.PendingCall, err error) {
	err = s.read(ctx, func(tx pgx.Tx) error {
		p, err = scanApproval(tx.QueryRow(ctx, "SELECT "+approvalColumns+" WHERE id = $1", text(id)))
		return approvalError(id, err)
	})
	return p, err
}

func approvalError(id string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return plan.Refuse(&v1.NotFoundError{Kind: "Approval", Name: id})
	}
	return err
}

// ListApprovals implements [store.Approvals].
func (s *Store) ListApprovals(ctx context.Context) (calls []v1.PendingCall, err error) {
	err = s.read(ctx, func(tx pgx.Tx) error {
		calls = nil
		rows, err := tx.Query(ctx, "SELECT "+approvalColumns+" ORDER BY place")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			p, err := scanApproval(rows)
			if err != nil {
				return err
			}
			calls = append(calls, p)
		}
		return rows.Err()
	})
	return calls, err
}

// DecideApproval implements [store.Approvals].
func (s *Store) DecideApproval(ctx context.Context, id string, d v1.Decision, now time.Time) (p v1.PendingCall, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if _, err := next(ctx, tx, "approvals", 0); err != nil {
			return err
		}
		if p, err = scanApproval(tx.QueryRow(ctx, "SELECT "+approvalColumns+" WHERE id = $1", text(id))); err != nil {
			return approvalError(id, err)
		}
		if err := p.Decide(d, now); err != nil {
			return plan.Refuse(err)
		}
		if err := updateApproval(ctx, tx, &p); err != nil {
			return err
		}
		return s.addAudit(ctx, tx, chain.Decision(&p, d.Approved, now))
	})
	if err != nil {
		return v1.PendingCall{}, err
	}
	s.changed.Notify()
	return p, nil
}

// AwaitApproval implements [store.Approvals].
func (s *Store) AwaitApproval(ctx context.Context, id string) (v1.PendingCall, error) {
	s.listen()
	return watch.Decided(ctx, &s.changed, id, s.Approval)
}

package sqlite

import (
	"context"
	"database/sql"
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

// keepApprovals is how many calls that wait no more are kept for lists.
const keepApprovals = 1000

const approvalColumns = "record, redact, edited, subject FROM approvals"

// TakeApproval implements [store.Approvals].
func (s *Store) TakeApproval(ctx context.Context, p v1.PendingCall, name string) (found v1.PendingCall, err error) {
	err = s.write(ctx, func(c *sql.Conn) error {
		var err error
		now := p.Created.UnixMicro()
		if name != "" {
			found, err = scanApproval(c.QueryRowContext(ctx, "SELECT "+approvalColumns+" WHERE id = ?", name))
		} else {
			found, err = scanApproval(c.QueryRowContext(ctx, "SELECT "+approvalColumns+` WHERE subject = ?1 AND principal = ?2 AND (principal <> '' OR session = ?3)
				AND state <> ?4 AND expires > ?5 ORDER BY rowid DESC LIMIT 1`, p.Subject, p.Principal, p.Session, v1.ApprovalUsed, now))
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
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
			return updateApproval(ctx, c, &used)
		}
		if name != "" {
			return plan.Refuse(&v1.NotFoundError{Kind: "Approval", Name: name})
		}
		found = p
		return insertApproval(ctx, c, &p)
	})
	if err != nil {
		return v1.PendingCall{}, err
	}
	return found, nil
}

func insertApproval(ctx context.Context, c *sql.Conn, p *v1.PendingCall) error {
	now := p.Created.UnixMicro()
	var all, ofSession, ofPrincipal, kept int
	err := c.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM approvals WHERE state = ?1 AND expires > ?2),
		(SELECT count(*) FROM approvals WHERE session = ?3 AND principal = ?4 AND state = ?1 AND expires > ?2),
		(SELECT count(*) FROM approvals WHERE principal = ?4 AND state = ?1 AND expires > ?2), (SELECT count(*) FROM approvals)`,
		v1.ApprovalPending, now, p.Session, p.Principal).Scan(&all, &ofSession, &ofPrincipal, &kept)
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
	_, err = c.ExecContext(ctx, "INSERT INTO approvals (id, subject, principal, session, state, created, expires, record, redact) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		p.ID, p.Subject, p.Principal, p.Session, p.State, now, p.Expires.UnixMicro(), record, redact)
	if err != nil || kept-all < keepApprovals {
		return err
	}
	_, err = c.ExecContext(ctx, `DELETE FROM approvals WHERE id IN
		(SELECT id FROM approvals WHERE state = ? OR expires <= ? ORDER BY rowid DESC LIMIT -1 OFFSET ?)`, v1.ApprovalUsed, now, keepApprovals)
	return err
}

func updateApproval(ctx context.Context, c *sql.Conn, p *v1.PendingCall) error {
	record, err := jsontext.Marshal(p)
	if err != nil {
		return err
	}
	var edited any // NULL when nobody edited
	if p.EditedArgs != nil {
		edited = []byte(p.EditedArgs)
	}
	_, err = c.ExecContext(ctx, "UPDATE approvals SET state = ?, expires = ?, record = ?, edited = ? WHERE id = ?",
		p.State, p.Expires.UnixMicro(), record, edited, p.ID)
	return err
}

// scanApproval reads one row of approvalColumns.
func scanApproval(row interface{ Scan(...any) error }) (p v1.PendingCall, err error) {
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
	err = s.read(ctx, func(c *sql.Conn) error {
		p, err = scanApproval(c.QueryRowContext(ctx, "SELECT "+approvalColumns+" WHERE id = ?", id))
		return approvalError(id, err)
	})
	return p, err
}

func approvalError(id string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return plan.Refuse(&v1.NotFoundError{Kind: "Approval", Name: id})
	}
	return err
}

// ListApprovals implements [store.Approvals].
func (s *Store) ListApprovals(ctx context.Context) (calls []v1.PendingCall, err error) {
	err = s.read(ctx, func(c *sql.Conn) error {
		calls = nil
		rows, err := c.QueryContext(ctx, "SELECT "+approvalColumns+" ORDER BY rowid")
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
	err = s.write(ctx, func(c *sql.Conn) error {
		if p, err = scanApproval(c.QueryRowContext(ctx, "SELECT "+approvalColumns+" WHERE id = ?", id)); err != nil {
			return approvalError(id, err)
		}
		if err := p.Decide(d, now); err != nil {
			return plan.Refuse(err)
		}
		if err := updateApproval(ctx, c, &p); err != nil {
			return err
		}
		return addAudit(ctx, c, chain.Decision(&p, d.Approved, now))
	})
	if err != nil {
		return v1.PendingCall{}, err
	}
	s.changed.Notify()
	return p, nil
}

// AwaitApproval implements [store.Approvals].
func (s *Store) AwaitApproval(ctx context.Context, id string) (v1.PendingCall, error) {
	return watch.Decided(ctx, &s.changed, id, s.Approval)
}

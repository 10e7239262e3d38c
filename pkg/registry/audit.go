package registry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
)

// Auditor takes the audit lines of each call: one with [v1.StatusStarted] before an
// executor runs, and one with the outcome after. It is called by many goroutines at once.
type Auditor interface {
	AppendAudit(context.Context, v1.AuditRecord) error
}

// GapKeeper is an Auditor that keeps what could not be written, for the case that the
// process ends before the line on it can be written.
type GapKeeper interface {
	KeepGap(v1.AuditGap)
}

// auditor writes audit lines and knows which could not be written.
type auditor struct {
	sink Auditor // nil: there is no audit
	now  func() time.Time
	seen *observer

	mu    sync.Mutex
	gap   v1.AuditGap // what is missing since the audit could be written last
	err   error       // why; nil when nothing is missing
	retry *auditRetry // the one that is under way, if any
}

// auditRetry is an attempt to note a gap, which all who want to write wait for.
type auditRetry struct {
	done chan struct{} // closed when it is over
	err  error         // fixed before
}

// write writes a line. Before it goes a line on those that could not be written, so that
// no line comes after a gap that is not noted.
func (a *auditor) write(ctx context.Context, line *v1.AuditRecord) error {
	err := a.noteGap(ctx)
	if err == nil {
		err = a.sink.AppendAudit(ctx, *line)
	}
	if err != nil && ctx.Err() == nil {
		a.lose(line.Time, err)
	}
	return err
}

// lose counts a line that is missing.
func (a *auditor) lose(at time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gap.Lines == 0 {
		a.gap.Since = at
	}
	a.gap.Lines, a.gap.Until, a.gap.Reason, a.err = a.gap.Lines+1, at, err.Error(), err
	a.seen.lineMissing()
	if k, ok := a.sink.(GapKeeper); ok {
		k.KeepGap(a.gap)
	}
}

// noteGap writes a line on what is missing, if anything is. The error says that the audit
// still cannot be written.
func (a *auditor) noteGap(ctx context.Context) error {
	a.mu.Lock()
	if a.err == nil {
		a.mu.Unlock()
		return nil
	}
	if r := a.retry; r != nil {
		a.mu.Unlock()
		select {
		case <-r.done:
			return r.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r := &auditRetry{done: make(chan struct{})}
	gap := a.gap
	a.retry = r
	a.mu.Unlock()
	r.err = a.sink.AppendAudit(context.WithoutCancel(ctx), v1.AuditRecord{Time: a.now().UTC(), CallID: rand.Text(), Status: v1.StatusGap, Gap: &gap}.Bound())
	a.mu.Lock()
	a.retry = nil
	if r.err != nil {
		a.err = r.err
	} else if a.gap.Lines -= gap.Lines; a.gap.Lines == 0 {
		a.err = nil
	} else {
		a.gap.Since = gap.Until
	}
	a.mu.Unlock()
	close(r.done)
	return r.err
}

// AuditError returns why the audit could not be written the last time; nil when it could,
// and when there is none. Calls are refused as long as it cannot, see
// [Options.AuditBestEffort].
func (r *Registry) AuditError() error {
	r.audit.mu.Lock()
	defer r.audit.mu.Unlock()
	return r.audit.err
}

// RetryAudit tries to write the audit again when it could not be written the last time,
// and returns why it still cannot. Each call tries, too; this is for times without any.
func (r *Registry) RetryAudit(ctx context.Context) error { return r.audit.noteGap(ctx) }

// intend writes the line of intent of a call that is about to run. An error refuses it.
func (r *Registry) intend(ctx context.Context, c *call) error {
	if r.audit.sink == nil {
		return nil
	}
	c.line = c.auditLine()
	c.line.Status = v1.StatusStarted
	err := r.audit.write(ctx, c.line)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case r.opts.AuditBestEffort:
		r.logAudit(ctx, c, err)
		return nil
	}
	c.unaudited = true
	return &v1.ExecutionError{Tool: c.line.Tool, Phase: v1.PhaseConnect, Message: "refused, because the audit cannot be written: " + err.Error(), Cause: err}
}

// outcome writes the line of a call that is over.
func (r *Registry) outcome(ctx context.Context, c *call) {
	audited := r.audit.sink != nil && !c.unaudited
	if !audited && r.opts.OnCall == nil {
		return
	}
	if c.line == nil {
		c.line = c.auditLine()
	}
	line := c.line // the sink has a copy of the line of intent
	line.Policy, line.Approval, line.DurationMS = c.decision(), c.approval, c.milliseconds()
	line.Status, line.Effects = c.res.Status, c.res.Effects
	if c.err != nil {
		line.Status = v1.StatusFailed
		line.ErrorType = v1.NewResultError(c.err).Type
	}
	if len(line.Effects) > 0 {
		*line = line.Bound() // the rest is
	}
	defer r.tell(ctx, c)
	if !audited {
		return
	}
	within, span := r.observer.enter(ctx, phaseAudit)
	err := r.audit.write(context.WithoutCancel(within), line)
	leave(span, err)
	if err != nil {
		r.logAudit(ctx, c, err)
	}
}

// auditLine is what both lines of a call have.
func (c *call) auditLine() *v1.AuditRecord {
	line := &v1.AuditRecord{
		Time: c.began.UTC(), CallID: c.ID, Principal: c.Principal, Session: c.Session, Turn: c.Turn,
		Tool: c.Tool, Namespace: c.Namespace, Policy: c.decision(), Approval: c.approval, Repair: c.Repair,
	}
	if line.CallID == "" {
		line.CallID = rand.Text()
	}
	sum := sha256.Sum256(c.args)
	line.ArgsHash = hex.EncodeToString(sum[:])
	if c.tool != nil {
		line.Tool, line.Namespace = c.tool.spec.Metadata.Name, c.tool.spec.Namespace()
		if c.decoded || json.Valid(c.args) {
			line.Args = redact.JSON(c.args, c.tool.redact)
		}
	}
	if line.Args == nil && len(c.args) > v1.MaxAuditArgs {
		line.ArgsBytes = len(c.args)
	}
	*line = line.Bound()
	return line
}

func (r *Registry) logAudit(ctx context.Context, c *call, err error) {
	r.opts.Logger.ErrorContext(ctx, "write the audit line", slog.String("tool", c.line.Tool), slog.String("call_id", c.line.CallID), slog.Any("error", err))
}

package registry

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
)

// Auditor receives the audit records of each call: one with [v1.StatusStarted] before an executor runs, and one with
// the outcome afterwards. It must be safe for concurrent use.
type Auditor interface {
	AppendAudit(context.Context, v1.AuditRecord) error
}

// GapKeeper is an Auditor that stores the gap in the audit log, in case the process ends before it can write the record
// about the gap.
type GapKeeper interface {
	KeepGap(v1.AuditGap)
}

// auditor writes audit records and counts those that could not be written.
type auditor struct {
	sink Auditor // nil if there is no audit log
	now  func() time.Time
	seen *observer

	mu    sync.Mutex
	gap   v1.AuditGap // the records lost since the last successful write
	err   error       // why; nil if no record is lost or late
	retry *auditRetry // the running attempt, if any
	// late holds the outcomes of calls that ended while the audit log could not be written, and whose record of intent
	// exists.
	late      []v1.AuditRecord
	lateBytes int
	written   int64 // how many late outcomes were written
}

// Limits of the waiting outcomes. Further outcomes are lost.
const (
	maxLate      = 10_000
	maxLateBytes = 16 << 20
)

// auditRetry is an attempt to write the record of a gap. All writers wait for it.
type auditRetry struct {
	done chan struct{} // closed when the attempt is over
	err  error         // set before done is closed
}

// write writes a record. It first writes the late records and a record of the lost ones, so that no record follows an
// unrecorded gap. The outcome of a call whose intent was written may be late.
func (a *auditor) write(ctx context.Context, line *v1.AuditRecord, intended bool) error {
	err := a.noteGap(ctx)
	if err == nil {
		err = a.sink.AppendAudit(ctx, *line)
	}
	switch {
	case err == nil || ctx.Err() != nil:
	case intended && a.delay(*line, err):
		return nil
	default:
		a.lose(line.Time, err)
	}
	return err
}

// delay keeps the outcome of a call, marked as late, until the audit log can be written. It returns false if there is
// no room for it.
func (a *auditor) delay(line v1.AuditRecord, err error) bool {
	line.Late = true
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.late) >= maxLate || a.lateBytes+sizeOf(&line) > maxLateBytes {
		return false
	}
	a.late, a.lateBytes, a.err = append(a.late, line), a.lateBytes+sizeOf(&line), err
	a.seen.lineLate(false)
	return true
}

// sizeOf returns the approximate size of a record.
func sizeOf(line *v1.AuditRecord) int {
	const rest = 1 << 10
	return rest + len(line.Args) + len(line.ArgsStart)
}

// writeLate writes the waiting outcomes, oldest first.
func (a *auditor) writeLate(ctx context.Context) error {
	for {
		a.mu.Lock()
		if len(a.late) == 0 {
			a.late = nil // releases the memory of the slice
			a.mu.Unlock()
			return nil
		}
		line := a.late[0]
		a.mu.Unlock()
		if err := a.sink.AppendAudit(ctx, line); err != nil {
			return err
		}
		a.mu.Lock()
		a.late, a.lateBytes, a.written = a.late[1:], a.lateBytes-sizeOf(&line), a.written+1
		a.seen.lineLate(true)
		a.mu.Unlock()
	}
}

// LateAudit returns how many outcomes of calls wait until the audit log can be written, and how many were written late.
func (r *Registry) LateAudit() (waiting int, written int64) {
	r.audit.mu.Lock()
	defer r.audit.mu.Unlock()
	return len(r.audit.late), r.audit.written
}

// lose counts a lost record.
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

// noteGap writes the late records, and a record of the lost ones if there are any. The error says why the audit log
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
	ctx = context.WithoutCancel(ctx)
	if r.err = a.writeLate(ctx); r.err == nil && gap.Lines > 0 {
		r.err = a.sink.AppendAudit(ctx, v1.AuditRecord{Time: a.now().UTC(), CallID: rand.Text(), Status: v1.StatusGap, Gap: &gap}.Bound())
	}
	a.mu.Lock()
	a.retry = nil
	if r.err != nil {
		a.err = r.err
	} else if a.gap.Lines -= gap.Lines; a.gap.Lines == 0 && len(a.late) == 0 {
		a.err = nil
	} else if gap.Lines > 0 {
		a.gap.Since = gap.Until
	}
	a.mu.Unlock()
	close(r.done)
	return r.err
}

// AuditError returns why the last write to the audit log failed. It is nil if the write succeeded or if there is no
// audit log. While it is not nil, calls are refused; see [Options.AuditBestEffort].
func (r *Registry) AuditError() error {
	r.audit.mu.Lock()
	defer r.audit.mu.Unlock()
	return r.audit.err
}

// RetryAudit writes the audit log again if the last write failed, and returns why it still fails. Each call retries
// too; this is for times without calls.
func (r *Registry) RetryAudit(ctx context.Context) error { return r.audit.noteGap(ctx) }

// intend writes the record of intent of a call that is about to run. If it returns an error, the call is refused.
func (r *Registry) intend(ctx context.Context, c *call) error {
	if r.audit.sink == nil {
		return nil
	}
	c.line = c.auditLine()
	c.line.Status = v1.StatusStarted
	err := r.audit.write(ctx, c.line, false)
	switch {
	case err == nil:
		c.intended = true
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case r.opts.AuditBestEffort:
		r.logAudit(ctx, c, err)
		return nil
	}
	c.unaudited = true
	return &v1.ExecutionError{Tool: c.line.Tool, Phase: v1.PhaseConnect, Message: "refused, because the audit log cannot be written: " + err.Error(), Cause: err}
}

// outcome writes the record of a finished call.
func (r *Registry) outcome(ctx context.Context, c *call) {
	audited := r.audit.sink != nil && !c.unaudited
	if !audited && r.opts.OnCall == nil {
		return
	}
	if c.line == nil {
		c.line = c.auditLine()
	}
	line := c.line // a copy, because the sink may keep the record of intent
	line.Policy, line.Approval, line.DurationMS = c.decision(), c.approval, c.milliseconds()
	line.Status, line.Effects = c.res.Status, c.res.Effects
	if c.err != nil {
		line.Status = v1.StatusFailed
		line.ErrorType = v1.NewResultError(c.err).Type
	}
	if len(line.Effects) > 0 {
		*line = line.Bound() // the other fields are bounded already
	}
	defer r.tell(ctx, c)
	if !audited {
		return
	}
	within, span := r.observer.enter(ctx, phaseAudit)
	err := r.audit.write(context.WithoutCancel(within), line, c.intended)
	leave(span, err)
	if err != nil {
		r.logAudit(ctx, c, err)
	}
}

// auditLine returns the fields that both records of a call share.
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

// AuditSearch writes a record of a search for tools: the caller is that of c, whose arguments are those of
// [v1.FindTools], and of which the record has the query with secrets masked. The record has no namespace. A search calls
// nothing, so it goes on even if the record cannot be written.
func (r *Registry) AuditSearch(ctx context.Context, c v1.Call, took time.Duration) {
	if r.audit.sink == nil {
		return
	}
	var args struct {
		Query string `json:"query"`
	}
	_ = json.Unmarshal(c.Args, &args) // a search without a query lists tools
	args.Query = redact.Written(args.Query)
	line := v1.AuditRecord{
		Time: r.audit.now().Add(-took).UTC(), CallID: cmp.Or(c.ID, rand.Text()), Principal: c.Principal, Session: c.Session, Turn: c.Turn,
		Tool: v1.FindTools, Args: jsontext.Of(args), Status: v1.StatusComplete, DurationMS: float64(took) / float64(time.Millisecond),
	}.Bound()
	if err := r.audit.write(ctx, &line, false); err != nil {
		r.logAudit(ctx, &call{line: &line}, err)
	}
}

func (r *Registry) logAudit(ctx context.Context, c *call, err error) {
	r.opts.Logger.ErrorContext(ctx, "write the audit line", slog.String("tool", c.line.Tool), slog.String("call_id", c.line.CallID), slog.Any("error", err))
}

package registry

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// CallEvent is a call that is over, for [Options.OnCall].
type CallEvent struct {
	// AuditRecord is the line of the audit on its outcome, be there an audit or not.
	v1.AuditRecord
	// Attempts counts how often the executor tried.
	Attempts int `json:"attempts"`
	// Executor is the name of the executor; empty when no tool was found.
	Executor string `json:"executor,omitempty"`
	// Error says what failed, with secrets masked.
	Error string `json:"error,omitempty"`
	// TraceID is that of the call's span; empty when nothing is traced.
	TraceID string `json:"trace_id,omitempty"`
	// Pending is the id of the call that waits for approval.
	Pending string `json:"pending,omitempty"`
}

// tell tells [Options.OnCall] of a call that is over.
func (r *Registry) tell(ctx context.Context, c *call) {
	if r.opts.OnCall == nil {
		return
	}
	e := CallEvent{AuditRecord: *c.line, Attempts: c.res.Attempts}
	if c.tool != nil && c.tool.executor != nil {
		e.Executor = c.tool.executor.Name()
	}
	if c.err != nil {
		e.Error = clip.Bytes(c.err.Error(), maxEventError)
	}
	if s := trace.SpanContextFromContext(ctx); s.HasTraceID() {
		e.TraceID = s.TraceID().String()
	}
	if c.res.Pending != nil {
		e.Pending = c.res.Pending.ID
	}
	r.opts.OnCall(e)
}

// maxEventError bounds the text of an error in a [CallEvent], in bytes.
const maxEventError = 2 << 10

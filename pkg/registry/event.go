package registry

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// CallEvent is a finished call, for [Options.OnCall].
type CallEvent struct {
	// AuditRecord is the audit record of its outcome. It is set even without an audit log.
	v1.AuditRecord
	// Attempts counts the attempts of the executor.
	Attempts int `json:"attempts"`
	// Executor is the name of the executor, or empty if no tool was found.
	Executor string `json:"executor,omitempty"`
	// Error is the error of the call, with secrets masked.
	Error string `json:"error,omitempty"`
	// TraceID is the trace ID of the call's span, or empty without tracing.
	TraceID string `json:"trace_id,omitempty"`
	// Pending is the ID of the call if it waits for approval.
	Pending string `json:"pending,omitempty"`
}

// tell passes a finished call to [Options.OnCall].
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

// maxEventError is the maximum size of the error text in a [CallEvent], in bytes.
const maxEventError = 2 << 10

package registry

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/tracing"
)

// observer creates a span for each call and counts calls; a nil observer does nothing. It records no part of arguments
// and results, and therefore only the types of errors.
type observer struct {
	tracer   trace.Tracer
	duration metric.Float64Histogram
	running  metric.Int64UpDownCounter
	refused  metric.Int64Counter
	missing  metric.Int64Counter
	late     metric.Int64Counter
	waiting  metric.Int64UpDownCounter
}

// scope is the OpenTelemetry instrumentation scope.
const scope = "toolctl.dev/toolctl/pkg/registry"

// Attribute keys of toolctl, in addition to those of the semantic conventions for generative AI 1.41.
const (
	keyNamespace = attribute.Key("toolctl.namespace")
	keyExecutor  = attribute.Key("toolctl.executor")
	keyStatus    = attribute.Key("toolctl.status")
	keyAttempts  = attribute.Key("toolctl.attempts")
	keyDecision  = attribute.Key("toolctl.policy.decision")
	keyPolicy    = attribute.Key("toolctl.policy.name")
	keyRule      = attribute.Key("toolctl.policy.rule")
)

// errorReported is the error.type of a tool that reported failure, as in the MCP conventions.
const errorReported = "tool_error"

func newObserver(t trace.TracerProvider, m metric.MeterProvider) (*observer, error) {
	tracer, meter, on := tracing.Instruments(scope, t, m)
	if !on {
		return nil, nil
	}
	o := &observer{tracer: tracer}
	var errs [6]error
	// The bounds are those of the MCP conventions, with finer ones for mocks and Go functions.
	o.duration, errs[0] = meter.Float64Histogram("toolctl.call.duration", metric.WithUnit("s"), metric.WithDescription("Duration of calls, from the lookup to the audit."),
		metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300))
	o.running, errs[1] = meter.Int64UpDownCounter("toolctl.calls.active", metric.WithUnit("{call}"), metric.WithDescription("Calls that are under way."))
	o.refused, errs[2] = meter.Int64Counter("toolctl.policy.refusals", metric.WithUnit("{call}"), metric.WithDescription("Calls refused by a policy."))
	o.missing, errs[3] = meter.Int64Counter("toolctl.audit.missing", metric.WithUnit("{line}"), metric.WithDescription("Audit records that could not be written."))
	o.late, errs[4] = meter.Int64Counter("toolctl.audit.late", metric.WithUnit("{line}"), metric.WithDescription("Outcomes of calls that were written late, once the audit could be written again."))
	o.waiting, errs[5] = meter.Int64UpDownCounter("toolctl.audit.waiting", metric.WithUnit("{line}"), metric.WithDescription("Outcomes of calls that wait until the audit can be written."))
	for _, count := range []interface {
		Add(context.Context, int64, ...metric.AddOption)
	}{o.missing, o.late, o.waiting} {
		count.Add(context.Background(), 0) // a rate needs the first value
	}
	return o, errors.Join(errs[:]...)
}

// begin starts the span of a call and returns a context with it.
func (o *observer) begin(ctx context.Context, c *call) context.Context {
	if o == nil {
		return ctx
	}
	if c.ID == "" {
		c.ID = rand.Text() // the audit log uses the same ID
	}
	o.running.Add(ctx, 1)
	ctx, _ = o.tracer.Start(ctx, "execute_tool", trace.WithAttributes(semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolCallID(c.ID)))
	return ctx
}

// lineMissing counts an audit record that could not be written.
func (o *observer) lineMissing() {
	if o != nil {
		o.missing.Add(context.Background(), 1)
	}
}

// lineLate counts the outcome of a call that is waiting, or that was written late.
func (o *observer) lineLate(written bool) {
	switch {
	case o == nil:
	case written:
		o.waiting.Add(context.Background(), -1)
		o.late.Add(context.Background(), 1)
	default:
		o.waiting.Add(context.Background(), 1)
	}
}

// end ends the span of a finished call.
func (o *observer) end(ctx context.Context, c *call) {
	if o == nil {
		return
	}
	o.running.Add(ctx, -1)
	attrs := make([]attribute.KeyValue, 0, 8)
	attrs = append(attrs, keyStatus.String(c.res.Status))
	failure := errorType(c.err)
	if c.err == nil && c.res.Status == v1.StatusFailed {
		failure = errorReported
	}
	if failure != "" {
		attrs = append(attrs, semconv.ErrorTypeKey.String(failure))
	}
	// A name without a manifest comes from the caller and must not become a time series.
	if c.tool != nil {
		attrs = append(attrs, semconv.GenAIToolName(c.tool.spec.Metadata.Name), keyNamespace.String(c.tool.spec.Namespace()))
	}
	o.duration.Record(ctx, c.reg.opts.Now().Sub(c.began).Seconds(), metric.WithAttributes(attrs...))
	if refused, ok := errors.AsType[*v1.PolicyError](c.err); ok {
		o.refused.Add(ctx, 1, metric.WithAttributes(semconv.GenAIToolName(c.res.Tool), keyNamespace.String(c.res.Namespace), keyPolicy.String(refused.Policy), keyRule.String(refused.Rule)))
	}

	span := trace.SpanFromContext(ctx)
	defer span.End()
	if !span.IsRecording() {
		return
	}
	if c.tool != nil {
		span.SetName("execute_tool " + c.tool.spec.Metadata.Name)
		attrs = append(attrs, keyExecutor.String(c.tool.spec.ExecutorName()))
	}
	if c.res.Attempts > 0 {
		attrs = append(attrs, keyAttempts.Int(c.res.Attempts))
	}
	if d := c.admit.Decision; d.Decision != "" {
		attrs = append(attrs, keyDecision.String(d.Decision))
		if d.Rule != "" {
			attrs = append(attrs, keyPolicy.String(d.Policy), keyRule.String(d.Rule))
		}
	}
	span.SetAttributes(attrs...)
	if failure != "" {
		span.SetStatus(codes.Error, failure)
	}
}

// Phases of a call, as named in its spans.
const (
	phaseArguments = "validate arguments"
	phasePolicy    = "policy"
	phaseApproval  = "approval"
	phaseExecute   = "execute"
	phaseResult    = "validate result"
	phaseAudit     = "audit"
)

// enter starts the span of a phase. The span is nil without tracing.
func (o *observer) enter(ctx context.Context, phase string) (context.Context, trace.Span) {
	if o == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, nil
	}
	return o.tracer.Start(ctx, phase)
}

// leave ends the span of a phase.
func leave(span trace.Span, err error) {
	if span == nil {
		return
	}
	if failure := errorType(err); failure != "" {
		span.SetAttributes(semconv.ErrorTypeKey.String(failure))
		span.SetStatus(codes.Error, failure)
	}
	span.End()
}

// errorType returns the error type that [v1.ResultError] has; empty for nil.
func errorType(err error) string {
	if err == nil {
		return ""
	}
	return cmp.Or(v1.NewResultError(err).Type, "_OTHER")
}

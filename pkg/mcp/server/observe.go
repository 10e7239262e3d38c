package server

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/mcpconv"
	"go.opentelemetry.io/otel/trace"

	"toolctl.dev/toolctl/internal/tracing"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// scope is the name of the OpenTelemetry instrumentation scope.
const scope = "toolctl.dev/toolctl/pkg/mcp/server"

// observer creates spans and metrics for requests, according to the conventions for MCP (OpenTelemetry
// semantic conventions 1.41, gen-ai, mcp). A nil observer creates nothing. Spans and metrics contain
// nothing from arguments and results, so errors appear only as their types.
type observer struct {
	server   *Server
	tracer   trace.Tracer
	duration mcpconv.ServerOperationDuration
	evicted  metric.Int64Counter
	streams  metric.Int64UpDownCounter
}

func newObserver(s *Server, t trace.TracerProvider, m metric.MeterProvider) *observer {
	tracer, meter, on := tracing.Instruments(scope, t, m)
	if !on {
		return nil
	}
	o := &observer{server: s, tracer: tracer}
	var errs [4]error
	o.duration, errs[0] = mcpconv.NewServerOperationDuration(meter, metric.WithExplicitBucketBoundaries(tracing.Buckets...))
	_, errs[1] = meter.Int64ObservableUpDownCounter("toolctl.mcp.sessions", metric.WithUnit("{session}"),
		metric.WithDescription("Open sessions over HTTP, of clients of 2025-11-25 and older."),
		metric.WithInt64Callback(func(_ context.Context, to metric.Int64Observer) error {
			to.Observe(int64(s.sessionCount()))
			return nil
		}))
	o.evicted, errs[2] = meter.Int64Counter("toolctl.mcp.sessions.evicted", metric.WithUnit("{session}"),
		metric.WithDescription("Idle sessions that were ended to make room for new ones."))
	o.streams, errs[3] = meter.Int64UpDownCounter("toolctl.mcp.streams", metric.WithUnit("{stream}"),
		metric.WithDescription("Open streams of notifications over HTTP."))
	o.evicted.Add(context.Background(), 0) // a rate needs an initial value
	o.streams.Add(context.Background(), 0)
	if err := errors.Join(errs[:]...); err != nil {
		s.opts.Logger.Warn("some metrics cannot be read", "error", err)
	}
	return o
}

// sessionEvicted counts a session that ended to make room for another.
func (o *observer) sessionEvicted(ctx context.Context) {
	if o != nil {
		o.evicted.Add(ctx, 1)
	}
}

// stream counts a stream as open until closed is called.
func (o *observer) stream() (closed func()) {
	if o == nil {
		return func() {}
	}
	o.streams.Add(context.Background(), 1)
	return func() { o.streams.Add(context.Background(), -1) }
}

// sessionCount returns the number of sessions over HTTP, because the session over stdio has no ID.
func (s *Server) sessionCount() (n int) {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return len(s.sessions.byID)
}

// operation is a request that is being answered. The zero value is not observed.
type operation struct {
	*observer
	req   *request
	began time.Time
}

// observe reads the trace that a request belongs to, and starts its span.
func (s *Server) observe(ctx context.Context, req *request) (context.Context, operation) {
	ctx = withTrace(ctx, req)
	if s.observer == nil || req.Method == methodListen { // it stays open for hours
		return ctx, operation{}
	}
	name := req.Method
	if _, ok := methods[name]; !ok {
		name = "_OTHER" // names invented by clients must not create time series
	}
	ctx, _ = s.observer.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, operation{s.observer, req, time.Now()}
}

// end ends the span of a request with its outcome.
func (op operation) end(ctx context.Context, res answer, err error) {
	if op.observer == nil {
		return
	}
	attrs := make([]attribute.KeyValue, 0, 11)
	target, known := op.target()
	if known != (attribute.KeyValue{}) && (known.Key != semconv.GenAIPromptNameKey || err == nil) {
		attrs = append(attrs, known)
	} else {
		target = "" // an unknown name comes from the caller and must not create a time series
	}
	if op.req.Method == methodCall {
		attrs = append(attrs, semconv.GenAIOperationNameExecuteTool)
	}
	if op.req.toolset != "" { // it exists
		attrs = append(attrs, attribute.String("toolctl.toolset", op.req.toolset))
	}
	attrs = append(attrs, op.transport()...)
	failure, code := outcome(res, err)
	if failure != "" {
		attrs = append(attrs, semconv.ErrorTypeKey.String(failure))
	}
	if code != "" {
		attrs = append(attrs, semconv.RPCResponseStatusCode(code))
	}
	op.duration.Record(ctx, time.Since(op.began).Seconds(), mcpconv.MethodNameAttr(op.req.Method), attrs...)

	span := trace.SpanFromContext(ctx)
	defer span.End()
	if !span.IsRecording() {
		return
	}
	if target != "" {
		span.SetName(op.req.Method + " " + target)
	}
	if n := op.req.session; n != nil && n.id != "" {
		attrs = append(attrs, semconv.McpSessionID(wire.SessionName(n.id))) // the same name as in the audit log
	}
	span.SetAttributes(append(attrs, semconv.McpMethodNameKey.String(op.req.Method))...)
	if failure != "" {
		span.SetStatus(codes.Error, failure)
	}
}

// target returns the tool or prompt of a request, if it exists.
func (op operation) target() (string, attribute.KeyValue) {
	name, _ := op.req.Params.Text("name")
	switch op.req.Method {
	case methodCall:
		o := op.server.offers(op.req.toolset)
		name, _, _, _ = o.target(op.req)
		if _, ok := o.byName[name]; ok || o.offersBuiltin(op.req, name) {
			return name, semconv.GenAIToolName(name)
		}
	case "prompts/get":
		return name, semconv.GenAIPromptName(name)
	}
	return "", attribute.KeyValue{}
}

func (op operation) transport() []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 4)
	if op.req.header == nil {
		attrs = append(attrs, semconv.NetworkTransportPipe)
	} else {
		attrs = append(attrs, semconv.NetworkTransportTCP, semconv.NetworkProtocolName("http"))
	}
	if v := op.req.version; slices.Contains(wire.Versions, v) {
		attrs = append(attrs, semconv.McpProtocolVersion(v))
	}
	return attrs
}

// outcome returns the error.type of a response, or "" for a success, and the code of a JSON-RPC error.
func outcome(res answer, err error) (failure, code string) {
	var failed *jsonrpc.Error
	switch r, ok := res.(*result); {
	case errors.As(err, &failed):
		code = strconv.FormatInt(failed.Code, 10)
		return code, code
	case errors.Is(err, context.Canceled):
		return "cancelled", ""
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout", ""
	case err != nil:
		return "_OTHER", ""
	case ok && r != nil && r.IsError:
		return "tool_error", ""
	}
	return "", ""
}

// maxTraceText limits each text of a foreign trace context, in bytes (W3C Baggage, section 3.3.2; W3C Trace
// Context requires less).
const maxTraceText = 8192

// withTrace adds the trace that a request belongs to, from its _meta (MCP specification 2026-07-28, basic,
// _meta) or else from the HTTP request. The trace is passed on to upstreams even if no spans are created
// here. Invalid values are ignored.
func withTrace(ctx context.Context, req *request) context.Context {
	get := func(key string) string {
		text, _ := req.Meta.Text(key)
		if text == "" {
			text = req.header.Get(key)
		}
		if len(text) > maxTraceText {
			return ""
		}
		return text
	}
	if text := get("traceparent"); text != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": text, "tracestate": get("tracestate")})
	}
	if text := get("baggage"); text != "" {
		if b, err := baggage.Parse(text); err == nil {
			ctx = baggage.ContextWithBaggage(ctx, b)
		}
	}
	return ctx
}

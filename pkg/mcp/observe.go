package mcp

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/mcpconv"
	"go.opentelemetry.io/otel/trace"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/tracing"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// scope is the name of the OpenTelemetry instrumentation scope.
const scope = "toolctl.dev/toolctl/pkg/mcp"

// Attribute keys of toolctl, in addition to those of the conventions.
const (
	keyServer    = attribute.Key("toolctl.mcpserver")
	keyNamespace = attribute.Key("toolctl.namespace")
)

// observer creates spans and metrics for the requests to servers, according to the conventions for MCP
// (OpenTelemetry semantic conventions 1.41, gen-ai, mcp). A nil observer creates nothing. Spans and metrics
// contain nothing from arguments and results, so errors appear only as their types.
type observer struct {
	tracer   trace.Tracer
	duration mcpconv.ClientOperationDuration
}

func newObserver(u *Upstreams, t trace.TracerProvider, m metric.MeterProvider) *observer {
	tracer, meter, on := tracing.Instruments(scope, t, m)
	if !on {
		return nil
	}
	o := &observer{tracer: tracer}
	var errs [2]error
	o.duration, errs[0] = mcpconv.NewClientOperationDuration(meter, metric.WithExplicitBucketBoundaries(tracing.Buckets...))
	_, errs[1] = meter.Int64ObservableGauge("toolctl.mcpserver.ready",
		metric.WithDescription("1 if the MCP server answered the last discovery and every call since has reached it, otherwise 0."),
		metric.WithInt64Callback(func(_ context.Context, to metric.Int64Observer) error {
			for _, k := range u.Servers() {
				var ready int64
				if s, ok := u.State(k); ok && s.Ready {
					ready = 1
				}
				to.Observe(ready, metric.WithAttributes(keyServer.String(k.Name), keyNamespace.String(k.Namespace)))
			}
			return nil
		}))
	if err := errors.Join(errs[:]...); err != nil {
		u.opts.Logger.Warn("some metrics cannot be read", slog.Any("error", err))
	}
	return o
}

// operation is one attempt to send a request. The zero value is not observed.
type operation struct {
	*observer
	upstream *upstream
	request  request
	began    time.Time
}

// observe starts the span of a request.
func (u *upstream) observe(ctx context.Context, r request) (context.Context, operation) {
	o := u.owner.observer
	if o == nil {
		return ctx, operation{}
	}
	name := r.method
	if r.target.Valid() {
		name += " " + r.target.Value.AsString()
	}
	ctx, _ = o.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	return ctx, operation{o, u, r, time.Now()}
}

// end ends the span of a request with its outcome. s is nil if no session was open.
func (op operation) end(ctx context.Context, s *session, answer *wire.Message, err error) {
	if op.observer == nil {
		return
	}
	attrs := make([]attribute.KeyValue, 0, 12)
	attrs = append(attrs, keyServer.String(op.upstream.key.Name), keyNamespace.String(op.upstream.key.Namespace))
	isCall := op.request.method == "tools/call"
	if op.request.target.Valid() && (isCall || err == nil) { // the name of an unknown prompt is arbitrary
		attrs = append(attrs, op.request.target)
	}
	if isCall {
		attrs = append(attrs, semconv.GenAIOperationNameExecuteTool)
	}
	switch transport := op.upstream.transport.Load(); transport {
	case v1.TransportStreamableHTTP, v1.TransportSSE:
		attrs = append(attrs, semconv.NetworkTransportTCP, semconv.NetworkProtocolName("http"))
	case "stdio":
		attrs = append(attrs, semconv.NetworkTransportPipe)
	}
	failure, code := outcome(isCall, answer, err)
	if failure != "" {
		attrs = append(attrs, semconv.ErrorTypeKey.String(failure))
	}
	if code != "" {
		attrs = append(attrs, semconv.RPCResponseStatusCode(code))
	}
	op.duration.Record(ctx, time.Since(op.began).Seconds(), mcpconv.MethodNameAttr(op.request.method), attrs...)

	span := trace.SpanFromContext(ctx)
	defer span.End()
	if !span.IsRecording() {
		return
	}
	if s != nil {
		if id := s.hello.session; id != "" {
			attrs = append(attrs, semconv.McpSessionID(wire.SessionName(id)))
		}
		if v := s.hello.Version; v != "" {
			attrs = append(attrs, semconv.McpProtocolVersion(clip.Bytes(v, 32)))
		}
	}
	span.SetAttributes(append(attrs, semconv.McpMethodNameKey.String(op.request.method))...)
	if failure != "" {
		span.SetStatus(codes.Error, failure)
	}
}

// outcome returns the error.type of a response, or "" for a success, and the code of a JSON-RPC error.
func outcome(isCall bool, answer *wire.Message, err error) (failure, code string) {
	var answered *v1.MCPError
	switch {
	case errors.As(err, &answered) && answered.Code != 0:
		code = strconv.FormatInt(answered.Code, 10)
		return code, code
	case err != nil:
		return v1.NewResultError(err).Type, ""
	case isCall && string(answer.Result.Get("isError")) == "true":
		return "tool_error", ""
	}
	return "", ""
}

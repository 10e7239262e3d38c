package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// FromEnv returns a context with the trace in TRACEPARENT and TRACESTATE, so that a command belongs to the trace of the
// job that runs it (opentelemetry.io/docs/specs/otel/context/env-carriers).
func FromEnv(ctx context.Context, env func(string) (string, bool)) context.Context {
	texts := propagation.MapCarrier{}
	for key, variable := range map[string]string{"traceparent": "TRACEPARENT", "tracestate": "TRACESTATE"} {
		if v, ok := env(variable); ok {
			texts[key] = v
		}
	}
	return propagation.TraceContext{}.Extract(ctx, texts)
}

// LogHandler adds trace_id and span_id to log lines whose context has a span.
func LogHandler(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if at := trace.SpanContextFromContext(ctx); at.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", at.TraceID().String()), slog.String("span_id", at.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h logHandler) WithAttrs(a []slog.Attr) slog.Handler { return logHandler{h.Handler.WithAttrs(a)} }
func (h logHandler) WithGroup(g string) slog.Handler      { return logHandler{h.Handler.WithGroup(g)} }

package tracing

import (
	"go.opentelemetry.io/otel/metric"
	nometric "go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"
)

// Instruments returns the tracer and the meter of a scope. It returns false if both providers are nil, which is how
// nobody asks for spans and metrics; if one is nil, its instrument does nothing.
func Instruments(scope string, t trace.TracerProvider, m metric.MeterProvider) (trace.Tracer, metric.Meter, bool) {
	on := t != nil || m != nil
	if t == nil {
		t = notrace.NewTracerProvider()
	}
	if m == nil {
		m = nometric.NewMeterProvider()
	}
	return t.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)), m.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL)), on
}

// Buckets are the bounds of durations in the semantic conventions for MCP, in seconds.
var Buckets = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// Package tracing passes the trace of a context on to other processes, and makes the tracer and the meter of a
// package. It uses the API of OpenTelemetry only.
package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// carried is what goes from one process to the next: W3C Trace Context and W3C Baggage.
var carried = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// Header adds the headers traceparent, tracestate and baggage of ctx to a request. It
// adds nothing when ctx has no trace.
func Header(ctx context.Context, h http.Header) {
	carried.Inject(ctx, propagation.HeaderCarrier(h))
}

// Meta returns what a request of MCP carries in its _meta object of the trace of ctx:
// traceparent, tracestate and baggage (MCP specification 2026-07-28, basic, _meta). It
// is nil when ctx has no trace.
func Meta(ctx context.Context) map[string]any {
	if !trace.SpanContextFromContext(ctx).IsValid() && baggage.FromContext(ctx).Len() == 0 {
		return nil
	}
	texts := propagation.MapCarrier{}
	carried.Inject(ctx, texts)
	meta := make(map[string]any, len(texts))
	for k, v := range texts {
		meta[k] = v
	}
	return meta
}

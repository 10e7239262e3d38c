//go:build !otlp_grpc

package telemetry

import (
	"context"
	"errors"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// overGRPC says that this build does not support OTLP over gRPC: see export_grpc.go.
const overGRPC = false

var errGRPC = errors.New("this build does not support OTLP over gRPC")

func newGRPCSpanExporter(context.Context, Options) (sdktrace.SpanExporter, error) {
	return nil, errGRPC
}

func newGRPCMetricExporter(context.Context, Options) (sdkmetric.Exporter, error) {
	return nil, errGRPC
}

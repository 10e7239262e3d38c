//go:build otlp_grpc

package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// overGRPC says that this build supports OTLP over gRPC, which needs 5 MB of libraries.
const overGRPC = true

func newGRPCSpanExporter(ctx context.Context, o Options) (sdktrace.SpanExporter, error) {
	retry := otlptracegrpc.RetryConfig{Enabled: o.Retry, InitialInterval: retryFirst, MaxInterval: retryMost, MaxElapsedTime: retryTotal}
	return otlptracegrpc.New(ctx, otlptracegrpc.WithRetry(retry))
}

func newGRPCMetricExporter(ctx context.Context, o Options) (sdkmetric.Exporter, error) {
	retry := otlpmetricgrpc.RetryConfig{Enabled: o.Retry, InitialInterval: retryFirst, MaxInterval: retryMost, MaxElapsedTime: retryTotal}
	return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithRetry(retry))
}

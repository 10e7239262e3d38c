//go:build otlp_grpc

package telemetry_test

import (
	"context"
	"net"
	"testing"
	"time"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"toolctl.dev/toolctl/pkg/telemetry"
)

const (
	overGRPC   = true
	grpcLogged = ""
)

type grpcCollector struct {
	collectortrace.UnimplementedTraceServiceServer
	collectormetrics.UnimplementedMetricsServiceServer
	got *received
}

type grpcTraces struct{ grpcCollector }

func (c grpcTraces) Export(_ context.Context, q *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	c.got.traces(q)
	return new(collectortrace.ExportTraceServiceResponse), nil
}

type grpcMetrics struct{ grpcCollector }

func (c grpcMetrics) Export(_ context.Context, q *collectormetrics.ExportMetricsServiceRequest) (*collectormetrics.ExportMetricsServiceResponse, error) {
	c.got.counts(q)
	return new(collectormetrics.ExportMetricsServiceResponse), nil
}

func TestCollectorOverGRPC(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var got received
	srv := grpc.NewServer()
	collectortrace.RegisterTraceServiceServer(srv, grpcTraces{grpcCollector{got: &got}})
	collectormetrics.RegisterMetricsServiceServer(srv, grpcMetrics{grpcCollector{got: &got}})
	served := make(chan error)
	go func() { served <- srv.Serve(ln) }()
	setEnv(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + ln.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		"OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "team=pay"})
	tel, l := start(t, telemetry.Options{FlushTimeout: time.Minute})
	use(t, tel)
	if err := tel.Close(); err != nil {
		t.Error(err)
	}
	srv.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	got.check(t)
	if l.String() != "" {
		t.Errorf("logged %s", l)
	}
}

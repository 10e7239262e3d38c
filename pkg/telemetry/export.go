package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The retry settings of exporters with Options.Retry, which are the defaults of the SDK.
const (
	retryFirst = 5 * time.Second
	retryMost  = 30 * time.Second
	retryTotal = time.Minute
)

// spanExporters returns an option for each exporter of spans.
func (t *Telemetry) spanExporters(ctx context.Context, o Options) ([]sdktrace.TracerProviderOption, error) {
	var opts []sdktrace.TracerProviderOption
	for _, name := range traces.exporters(o.Logger) {
		e, err := newSpanExporter(ctx, name, o)
		if err != nil {
			return nil, err
		}
		if e != nil {
			opts = append(opts, sdktrace.WithBatcher(&spanExporter{e, t.life, failure{log: o.Logger, signal: traces}}))
		}
	}
	return opts, nil
}

func newSpanExporter(ctx context.Context, name string, o Options) (sdktrace.SpanExporter, error) {
	if name == "console" {
		return stdouttrace.New(stdouttrace.WithWriter(o.Console))
	}
	switch protocol, ok := traces.protocol(o.Logger); {
	case !ok:
		return nil, nil
	case protocol == "grpc":
		return newGRPCSpanExporter(ctx, o)
	}
	retry := otlptracehttp.RetryConfig{Enabled: o.Retry, InitialInterval: retryFirst, MaxInterval: retryMost, MaxElapsedTime: retryTotal}
	return otlptracehttp.New(ctx, otlptracehttp.WithRetry(retry))
}

// readers returns an option for each reader of metrics.
func (t *Telemetry) readers(ctx context.Context, o Options) ([]sdkmetric.Option, error) {
	var opts []sdkmetric.Option
	for _, name := range metrics.exporters(o.Logger) {
		e, err := newMetricExporter(ctx, name, o)
		if err != nil {
			return nil, err
		}
		if e != nil {
			opts = append(opts, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(&metricExporter{e, t.life, failure{log: o.Logger, signal: metrics}})))
		}
	}
	if o.Prometheus {
		t.scraped = prometheus.NewRegistry()
		t.scraped.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		e, err := otelprometheus.New(otelprometheus.WithRegisterer(t.scraped), otelprometheus.WithoutScopeInfo())
		if err != nil {
			return nil, err
		}
		opts = append(opts, sdkmetric.WithReader(e))
	}
	return opts, nil
}

func newMetricExporter(ctx context.Context, name string, o Options) (sdkmetric.Exporter, error) {
	if name == "console" {
		return stdoutmetric.New(stdoutmetric.WithWriter(o.Console))
	}
	switch protocol, ok := metrics.protocol(o.Logger); {
	case !ok:
		return nil, nil
	case protocol == "grpc":
		return newGRPCMetricExporter(ctx, o)
	}
	retry := otlpmetrichttp.RetryConfig{Enabled: o.Retry, InitialInterval: retryFirst, MaxInterval: retryMost, MaxElapsedTime: retryTotal}
	return otlpmetrichttp.New(ctx, otlpmetrichttp.WithRetry(retry))
}

// spanExporter ends with the life of a Telemetry and logs its failures itself, because the SDK would pass them to a
// process-wide handler.
type spanExporter struct {
	sdktrace.SpanExporter
	life context.Context
	failure
}

func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, stop := until(ctx, e.life)
	defer stop()
	e.report(e.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

func (e *spanExporter) Shutdown(ctx context.Context) error {
	ctx, stop := until(ctx, e.life)
	defer stop()
	e.report(e.SpanExporter.Shutdown(ctx))
	return nil
}

// metricExporter is a spanExporter for metrics.
type metricExporter struct {
	sdkmetric.Exporter
	life context.Context
	failure
}

func (e *metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	ctx, stop := until(ctx, e.life)
	defer stop()
	e.report(e.Exporter.Export(ctx, m))
	return nil
}

func (e *metricExporter) Shutdown(ctx context.Context) error {
	ctx, stop := until(ctx, e.life)
	defer stop()
	e.report(e.Exporter.Shutdown(ctx))
	return nil
}

// until returns a context that ends with ctx and with life.
func until(ctx, life context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(life, cancel)
	return ctx, func() { stop(); cancel() }
}

// failure logs the first failure of an exporter.
type failure struct {
	log    *slog.Logger
	signal signal
	once   sync.Once
}

func (f *failure) report(err error) {
	if err == nil {
		return
	}
	f.once.Do(func() {
		f.log.Warn("telemetry: "+f.signal.name+" cannot be exported; calls continue, and this message is not repeated", slog.String("error", reason(err)))
	})
}

// reason returns an error without the address, which may contain a secret.
func reason(err error) string {
	var at *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "the collector did not accept them in time"
	case errors.As(err, &at):
		return at.Err.Error()
	}
	return err.Error()
}

var _ io.Closer = (*Telemetry)(nil)

// Package telemetry sets up OpenTelemetry: where spans and metrics go to is said by the
// variables that all of its SDKs share, and Prometheus may ask for the metrics.
//
//	t, err := telemetry.Start(ctx, telemetry.Options{Service: "toolctl", Version: "1.0"})
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	reg, err := registry.New(objects, registry.Options{TracerProvider: t.TracerProvider(), MeterProvider: t.MeterProvider()})
//
// # Variables
//
// Nothing is set up unless OTEL_EXPORTER_OTLP_ENDPOINT, its forms for one signal
// (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT),
// OTEL_TRACES_EXPORTER or OTEL_METRICS_EXPORTER is set. The exporters are otlp, console
// and none; OTEL_EXPORTER_OTLP_PROTOCOL is http/protobuf or grpc. The SDK itself reads
// what is left: headers, certificates, timeouts, OTEL_TRACES_SAMPLER, OTEL_BSP_*,
// OTEL_METRIC_EXPORT_INTERVAL, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME. See
// opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables.
//
// # What it never does
//
// An exporter that is down, slow or wrong fails no call and holds none up: spans wait in
// a queue that drops them when it is full. Of each signal the first failure is logged.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// Options configure [Start].
type Options struct {
	// Service and Version identify this program, unless OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES do.
	Service, Version string
	// Logger logs export failures and invalid variables, without secrets. Default: nothing is logged.
	Logger *slog.Logger
	// Console is the output of the exporter "console". Default: os.Stderr.
	Console io.Writer
	// Prometheus keeps the metrics for [Telemetry.Handler], regardless of the variables.
	Prometheus bool
	// Retry makes exporters retry for a while when the collector is down, as a long-lived process should. Default:
	// unsent data are dropped.
	Retry bool
	// FlushTimeout is the maximum time that Close waits for exports. Default: 2 seconds.
	FlushTimeout time.Duration
}

const (
	defaultFlushTimeout = 2 * time.Second
	// maxSeries is the maximum number of time series of one instrument: enough for the tools of a large catalog with a
	// few outcomes each. Further series are combined into one.
	maxSeries = 10_000
)

// Telemetry is the result of [Start]. A nil *Telemetry is disabled.
type Telemetry struct {
	log     *slog.Logger
	flush   time.Duration
	tracers *sdktrace.TracerProvider // nil without span exporters
	meters  *sdkmetric.MeterProvider // nil without metric readers
	scraped *prometheus.Registry     // nil without Options.Prometheus

	life   context.Context // ends when exporters must give up
	giveUp context.CancelFunc
}

// Start sets up telemetry by the environment variables. It logs and ignores an invalid variable, as OpenTelemetry
// requires, and returns an error for any other failure.
func Start(ctx context.Context, o Options) (*Telemetry, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Console == nil {
		o.Console = os.Stderr
	}
	if o.FlushTimeout <= 0 {
		o.FlushTimeout = defaultFlushTimeout
	}
	t := &Telemetry{log: o.Logger, flush: o.FlushTimeout}
	t.life, t.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	spans, spansErr := t.spanExporters(ctx, o)
	readers, readersErr := t.readers(ctx, o)
	if err := errors.Join(spansErr, readersErr); err != nil {
		t.giveUp()
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if len(spans)+len(readers) == 0 {
		t.giveUp()
		return t, nil
	}
	res, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName(o.Service), semconv.ServiceVersion(o.Version), semconv.ServiceInstanceID(uuid.NewString())),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil { // res has the part that could be read
		o.Logger.Warn("telemetry: OTEL_RESOURCE_ATTRIBUTES", slog.Any("error", err))
	}
	if len(spans) > 0 {
		t.tracers = sdktrace.NewTracerProvider(append(spans, sdktrace.WithResource(res))...)
	}
	if len(readers) > 0 {
		t.meters = sdkmetric.NewMeterProvider(append(readers, sdkmetric.WithResource(res), sdkmetric.WithCardinalityLimit(maxSeries))...)
	}
	return t, nil
}

// TracerProvider creates spans; it is nil without exporters.
func (t *Telemetry) TracerProvider() trace.TracerProvider {
	if t == nil || t.tracers == nil {
		return nil
	}
	return t.tracers
}

// MeterProvider creates instruments; it is nil without readers.
func (t *Telemetry) MeterProvider() metric.MeterProvider {
	if t == nil || t.meters == nil {
		return nil
	}
	return t.meters
}

// Close exports the remaining data, for at most Options.FlushTimeout, and shuts the exporters down. It returns when
// they have ended.
func (t *Telemetry) Close() error {
	if t == nil {
		return nil
	}
	// The SDK would continue in the background after its context has ended, so the exporters must give up.
	defer t.giveUp()
	defer time.AfterFunc(t.flush, t.giveUp).Stop()
	ctx := context.WithoutCancel(t.life)
	var errs [2]error
	if t.tracers != nil {
		errs[0] = t.tracers.Shutdown(ctx)
	}
	if t.meters != nil {
		errs[1] = t.meters.Shutdown(ctx)
	}
	return errors.Join(errs[:]...)
}

// signal is the configuration of spans or of metrics in the variables.
type signal struct {
	name string // for messages
	key  string // TRACES or METRICS
}

var traces, metrics = signal{"traces", "TRACES"}, signal{"metrics", "METRICS"}

// exporters returns the exporters that the variables select, and logs unknown names.
func (s signal) exporters(log *slog.Logger) []string {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil
	}
	variable := "OTEL_" + s.key + "_EXPORTER"
	asked := os.Getenv(variable)
	if asked == "" && (os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+s.key+"_ENDPOINT") != "") {
		asked = "otlp"
	}
	var names []string
	for name := range strings.SplitSeq(asked, ",") {
		switch name = strings.TrimSpace(name); name {
		case "", "none":
		case "otlp", "console":
			names = append(names, name)
		default:
			log.Warn("telemetry: ignored an unknown exporter: expected otlp, console or none; Prometheus reads metrics at an address of their own",
				slog.String("variable", variable), slog.String("value", name))
		}
	}
	return names
}

// protocol returns the OTLP protocol, or false if this build does not support it.
func (s signal) protocol(log *slog.Logger) (string, bool) {
	const otlpHTTP, grpc = "http/protobuf", "grpc"
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_" + s.key + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch v := os.Getenv(variable); v {
		case "":
		case grpc:
			if !overGRPC {
				log.Warn("telemetry: this build does not support OTLP over gRPC, nothing is exported: use http/protobuf, or build with -tags otlp_grpc", slog.String("variable", variable))
			}
			return v, overGRPC
		case otlpHTTP:
			return v, true
		default:
			log.Warn("telemetry: unknown protocol, nothing is exported: expected http/protobuf or grpc", slog.String("variable", variable), slog.String("value", v))
			return "", false
		}
	}
	return otlpHTTP, true
}

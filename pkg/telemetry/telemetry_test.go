package telemetry_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"toolctl.dev/toolctl/internal/tracing"
	"toolctl.dev/toolctl/pkg/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log is a logger whose lines a test can read.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// setEnv sets only these variables of OpenTelemetry.
func setEnv(t *testing.T, env map[string]string) {
	t.Helper()
	for _, key := range []string{"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER"} {
		t.Setenv(key, env[key])
	}
}

func start(t *testing.T, o telemetry.Options) (*telemetry.Telemetry, *log) {
	t.Helper()
	l := new(log)
	o.Service, o.Version, o.Logger = "toolctl", "1.2.3", slog.New(slog.NewTextHandler(l, nil))
	tel, err := telemetry.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return tel, l
}

// use creates one span and counts one call, if these are enabled.
func use(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	if p := tel.TracerProvider(); p != nil {
		_, span := p.Tracer("test").Start(t.Context(), "work")
		span.End()
	}
	if p := tel.MeterProvider(); p != nil {
		n, err := p.Meter("test").Int64Counter("things.done", metric.WithUnit("{thing}"))
		if err != nil {
			t.Fatal(err)
		}
		n.Add(t.Context(), 1, metric.WithAttributes(attribute.String("kind", "a")))
	}
}

func TestVariables(t *testing.T) {
	const collector = "http://127.0.0.1:1"
	for _, tc := range []struct {
		name            string
		env             map[string]string
		prometheus      bool
		traces, metrics bool
		logged          string
	}{
		{name: "nothing is set"},
		{name: "an endpoint", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector}, traces: true, metrics: true},
		{name: "an endpoint for traces", env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector}, traces: true},
		{name: "an endpoint for metrics", env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": collector}, metrics: true},
		{name: "disabled", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_SDK_DISABLED": "TRUE"}},
		{name: "no traces", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_TRACES_EXPORTER": "none"}, metrics: true},
		{name: "traces alone", env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, traces: true},
		{name: "the console", env: map[string]string{"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "console"}, traces: true, metrics: true},
		{name: "two exporters", env: map[string]string{"OTEL_TRACES_EXPORTER": "console, otlp"}, traces: true},
		{name: "gRPC", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, traces: overGRPC, metrics: overGRPC, logged: grpcLogged},
		{name: "an unknown exporter", env: map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, logged: "ignored an unknown exporter: expected otlp, console or none"},
		{name: "an unknown protocol", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, metrics: true,
			logged: "unknown protocol, nothing is exported: expected http/protobuf or grpc"},
		{name: "Prometheus", prometheus: true, metrics: true},
		{name: "Prometheus, and else disabled", env: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, prometheus: true, metrics: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			setEnv(t, tc.env)
			tel, l := start(t, telemetry.Options{Prometheus: tc.prometheus, Console: io.Discard})
			if got := tel.TracerProvider() != nil; got != tc.traces {
				t.Errorf("traces: %v", got)
			}
			if got := tel.MeterProvider() != nil; got != tc.metrics {
				t.Errorf("metrics: %v", got)
			}
			if got := tel.Handler() != nil; got != tc.prometheus {
				t.Errorf("a handler: %v", got)
			}
			if text := l.String(); !strings.Contains(text, tc.logged) || tc.logged == "" && text != "" {
				t.Errorf("logged %q, want %q", text, tc.logged)
			}
			if err := tel.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	var off *telemetry.Telemetry
	if off.TracerProvider() != nil || off.MeterProvider() != nil || off.Handler() != nil || off.Close() != nil {
		t.Error("a nil Telemetry is not off")
	}
}

// received is the data that a collector received.
type received struct {
	mu      sync.Mutex
	spans   []string // name of the service and of the span
	metrics []string
}

func (r *received) traces(q *collectortrace.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range q.ResourceSpans {
		service := ""
		for _, a := range rs.Resource.Attributes {
			switch a.Key {
			case "service.name", "service.version", "team":
				service += a.Value.GetStringValue() + " "
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				r.spans = append(r.spans, service+s.Name)
			}
		}
	}
}

func (r *received) counts(q *collectormetrics.ExportMetricsServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rm := range q.ResourceMetrics {
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				r.metrics = append(r.metrics, m.Name)
			}
		}
	}
}

func (r *received) check(t *testing.T) {
	t.Helper()
	if got := strings.Join(r.spans, ";"); got != "mine 1.2.3 pay work" && got != "pay mine 1.2.3 work" {
		t.Errorf("spans %q", got)
	}
	if got := strings.Join(r.metrics, ";"); got != "things.done" {
		t.Errorf("metrics %q", got)
	}
}

// The configured signals reach a collector over HTTP, with their headers.
func TestCollectorOverHTTP(t *testing.T) {
	var got received
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		switch r.URL.Path {
		case "/v1/traces":
			q := new(collectortrace.ExportTraceServiceRequest)
			if err := proto.Unmarshal(body, q); err != nil {
				t.Error(err)
			}
			got.traces(q)
		case "/v1/metrics":
			q := new(collectormetrics.ExportMetricsServiceRequest)
			if err := proto.Unmarshal(body, q); err != nil {
				t.Error(err)
			}
			got.counts(q)
		default:
			t.Errorf("asked for %s", r.URL.Path)
		}
		if key := r.Header.Get("Api-Key"); key != "hunter2" {
			t.Errorf("the header is %q", key)
		}
	}))
	defer collector.Close()
	setEnv(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=hunter2",
		"OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "team=pay"})
	tel, l := start(t, telemetry.Options{})
	use(t, tel)
	if err := tel.Close(); err != nil {
		t.Error(err)
	}
	got.check(t)
	if l.String() != "" {
		t.Errorf("logged %s", l)
	}
}

// A collector that is missing or never answers is logged once for each signal, and Close still returns.
func TestCollectorDown(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := free.Addr().String()
	free.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done() // until the exporter gives up
	}))
	defer silent.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }))
	defer refusing.Close()
	type down struct {
		name, endpoint, protocol, logged string
		retry                            bool
	}
	cases := []down{
		{name: "nobody listens", endpoint: "http://user:hunter2@" + nobody, logged: "connection refused"},
		{name: "nobody listens, with retries", endpoint: "http://" + nobody, retry: true, logged: "calls continue"},
		{name: "it never answers", endpoint: silent.URL, logged: "the collector did not accept them in time"},
		{name: "it refuses", endpoint: refusing.URL, logged: "401"},
	}
	if overGRPC {
		cases = append(cases, down{name: "nobody listens, gRPC", endpoint: "http://" + nobody, protocol: "grpc", logged: "calls continue"})
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			setEnv(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": tc.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": tc.protocol, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=hunter2"})
			tel, l := start(t, telemetry.Options{FlushTimeout: 50 * time.Millisecond, Retry: tc.retry})
			for range 10 {
				use(t, tel)
			}
			if err := tel.Close(); err != nil {
				t.Error(err)
			}
			text := l.String()
			if strings.Count(text, "traces cannot be exported") != 1 || strings.Count(text, "metrics cannot be exported") != 1 || !strings.Contains(text, tc.logged) {
				t.Errorf("logged %s", text)
			}
			if strings.Contains(text, "hunter2") {
				t.Errorf("the log shows a secret: %s", text)
			}
		})
	}
}

func TestPrometheus(t *testing.T) {
	setEnv(t, nil)
	tel, _ := start(t, telemetry.Options{Prometheus: true})
	use(t, tel)
	rec := httptest.NewRecorder()
	tel.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{`things_done_total{kind="a"} 1`, "# TYPE things_done_total counter", "go_goroutines ", "process_start_time_seconds ", `service_name="toolctl"`} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("no %s in\n%s", want, rec.Body)
		}
	}
	if err := tel.Close(); err != nil {
		t.Error(err)
	}
}

func TestConsole(t *testing.T) {
	setEnv(t, map[string]string{"OTEL_TRACES_EXPORTER": "console"})
	var out bytes.Buffer
	tel, _ := start(t, telemetry.Options{Console: &out})
	use(t, tel)
	if err := tel.Close(); err != nil {
		t.Error(err)
	}
	var span struct{ Name string }
	if err := json.NewDecoder(&out).Decode(&span); err != nil || span.Name != "work" {
		t.Errorf("%+v, %v", span, err)
	}
}

func TestContext(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	env := map[string]string{"TRACEPARENT": parent, "TRACESTATE": "a=b"}
	ctx := telemetry.FromEnv(t.Context(), func(k string) (string, bool) { v, ok := env[k]; return v, ok })
	member, err := baggage.NewMember("tenant", "x")
	if err != nil {
		t.Fatal(err)
	}
	bag, err := baggage.New(member)
	if err != nil {
		t.Fatal(err)
	}
	ctx = baggage.ContextWithBaggage(ctx, bag)
	want := map[string]string{"traceparent": parent, "tracestate": "a=b", "baggage": "tenant=x"}
	meta, header := tracing.Meta(ctx), http.Header{}
	tracing.Header(ctx, header)
	for key, v := range want {
		if meta[key] != v || header.Get(key) != v {
			t.Errorf("%s: %v in _meta, %q as a header; want %q", key, meta[key], header.Get(key), v)
		}
	}
	if len(meta) != 3 || len(header) != 3 {
		t.Errorf("%v, %v", meta, header)
	}
	if meta := tracing.Meta(t.Context()); meta != nil {
		t.Errorf("without a trace: %v", meta)
	}
	for _, bad := range []string{"", "x", "00-00000000000000000000000000000000-b7ad6b7169203331-01"} {
		env = map[string]string{"TRACEPARENT": bad}
		if at := trace.SpanContextFromContext(telemetry.FromEnv(t.Context(), func(k string) (string, bool) { v, ok := env[k]; return v, ok })); at.IsValid() {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestLogHandler(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(telemetry.LogHandler(slog.NewJSONHandler(&out, nil))).With("a", 1)
	env := map[string]string{"TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	log.InfoContext(telemetry.FromEnv(t.Context(), func(k string) (string, bool) { v, ok := env[k]; return v, ok }), "with")
	if got := out.String(); !strings.Contains(got, `"a":1,"trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331"`) {
		t.Errorf("got %s", got)
	}
	out.Reset()
	log.InfoContext(t.Context(), "without")
	if got := out.String(); strings.Contains(got, "trace_id") {
		t.Errorf("got %s", got)
	}
}

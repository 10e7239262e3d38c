package registry_test

import (
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

// The duration of a call uses the clock with which it began.
func TestDurationIsByTheInjectedClock(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	reg, err := registry.New(nil, registry.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), Now: func() time.Time { return time.Unix(5, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	if _, err := reg.Execute(t.Context(), v1.Call{Tool: "none"}); err == nil {
		t.Fatal("it was found")
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
				for _, p := range h.DataPoints {
					if seen = true; p.Sum != 0 {
						t.Errorf("%s: %g s", m.Name, p.Sum)
					}
				}
			}
		}
	}
	if !seen {
		t.Error("no duration was recorded")
	}
}

package telemetry

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds of what Prometheus may ask for.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Handler answers with the metrics in the format of Prometheus; it is nil without
// Options.Prometheus. Names are those of OpenTelemetry with "_" for ".", and with their
// unit: toolctl.call.duration is toolctl_call_duration_seconds. Beside them are the
// usual metrics of the Go runtime and of the process.
func (t *Telemetry) Handler() http.Handler {
	if t == nil || t.scraped == nil {
		return nil
	}
	return promhttp.HandlerFor(t.scraped, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(t.log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError, // a part is better than nothing
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
	})
}

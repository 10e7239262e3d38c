package console

import (
	"context"
	"errors"
	"net/http"

	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// measured registers the metrics of the console. The returned function wraps a handler to count its requests.
func (c *Console) measured() func(http.HandlerFunc) http.HandlerFunc {
	if c.opts.MeterProvider == nil {
		return func(next http.HandlerFunc) http.HandlerFunc { return next }
	}
	meter := c.opts.MeterProvider.Meter("toolctl.dev/toolctl/pkg/console")
	gauge := func(name, unit, text string, read func() int) error {
		_, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(text), metric.WithInt64Callback(func(_ context.Context, to metric.Int64Observer) error {
			to.Observe(int64(read()))
			return nil
		}))
		return err
	}
	requests, err := meter.Int64Counter("toolctl.console.requests", metric.WithUnit("{request}"), metric.WithDescription("Requests to the console, by status."))
	err = errors.Join(err,
		gauge("toolctl.console.sessions", "{session}", "People signed in to the console.", c.sessions.count),
		gauge("toolctl.console.streams", "{stream}", "Console pages with an open event stream.", c.feed.watching))
	if err != nil {
		c.opts.Logger.Warn("some metrics cannot be read", "error", err)
	}
	return func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			seen := &statusWriter{w, http.StatusOK}
			next(seen, r)
			requests.Add(r.Context(), 1, metric.WithAttributes(semconv.HTTPResponseStatusCode(seen.status)))
		}
	}
}

// statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the original writer, for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

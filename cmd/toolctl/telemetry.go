package main

import (
	"context"
	"log/slog"

	"toolctl.dev/toolctl/pkg/telemetry"
)

// watched returns the telemetry of the program, and starts it on the first call. run closes it. If it cannot start, the
// command continues without telemetry.
func (a *app) watched(ctx context.Context) *telemetry.Telemetry {
	if a.telemetry == nil {
		t, err := telemetry.Start(ctx, telemetry.Options{Service: "toolctl", Version: buildVersion().Version, Logger: a.logger(), Console: a.err, Prometheus: a.scraped, Retry: a.lasting})
		if err != nil {
			a.logger().Warn("no telemetry", slog.Any("error", err))
			t = new(telemetry.Telemetry)
		}
		a.telemetry = t
	}
	return a.telemetry
}

// endTelemetry exports the remaining spans and metrics, within a time limit.
func (a *app) endTelemetry() {
	if err := a.telemetry.Close(); err != nil {
		a.logger().Warn("end telemetry", slog.Any("error", err))
	}
}

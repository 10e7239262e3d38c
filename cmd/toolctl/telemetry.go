package main

import (
	"context"
	"log/slog"

	"toolctl.dev/toolctl/pkg/telemetry"
)

// watched returns where spans and metrics go to. It is made when a command first asks;
// run closes it. Failing to make it stops no command.
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

// endTelemetry exports what is left, within its bound.
func (a *app) endTelemetry() {
	if err := a.telemetry.Close(); err != nil {
		a.logger().Warn("end telemetry", slog.Any("error", err))
	}
}

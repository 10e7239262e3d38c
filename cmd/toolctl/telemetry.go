package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/server"
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

// listenForMetrics listens at the address where Prometheus finds /metrics; nil without one.
func (o *serveOptions) listenForMetrics(ctx context.Context) (net.Listener, error) {
	if o.metricsAddr == "" {
		return nil, nil
	}
	o.scraped = true
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", o.metricsAddr)
	if err != nil {
		return nil, notListening("metrics-addr", &server.ListenError{Address: o.metricsAddr, Err: err})
	}
	o.log.Info("metrics", "url", "http://"+ln.Addr().String()+"/metrics")
	return ln, nil
}

// serveMetrics answers Prometheus. The function that it returns ends that and waits for it.
func (o *serveOptions) serveMetrics(ctx context.Context, ln net.Listener, a *admission.Admission) (stop func()) {
	return o.watched(ctx).Serve(ln, func(metrics http.Handler) http.Handler {
		return a.Routes(admission.Route{Pattern: "GET /metrics", Kind: admission.Of(admission.KindProbe), Enter: admission.Open(metrics)})
	})
}

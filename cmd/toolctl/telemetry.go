package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

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

// serveMetrics answers Prometheus at an address of its own. The function that it returns
// ends that and waits for it.
//
// Other machines may reach it without --insecure and without a token, unlike /mcp: who
// scrapes is elsewhere as a rule, nothing can be called there, and what it tells are names
// of tools, policies and servers, and counts; no arguments, principals or sessions.
func (o *serveOptions) serveMetrics(ctx context.Context) (stop func(), err error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", o.metricsAddr)
	if err != nil {
		return nil, notListening("metrics-addr", &server.ListenError{Address: o.metricsAddr, Err: err})
	}
	metrics := o.watched(ctx).Handler()
	if at, ok := ln.Addr().(*net.TCPAddr); ok && at.IP.IsLoopback() {
		metrics = localOnly(metrics)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	srv := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(o.log.Handler(), slog.LevelDebug)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(ln) // its end is ours
	}()
	o.log.Info("metrics", "url", "http://"+ln.Addr().String()+"/metrics")
	return func() {
		_ = srv.Close() // a scrape can be lost
		<-ended
	}, nil
}

// localOnly refuses requests by another name than this machine's, which a web page could
// bring about (DNS rebinding).
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if !strings.EqualFold(host, "localhost") && (err != nil || !ip.IsLoopback()) {
			http.Error(w, "the Host header is not one of this machine's names", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

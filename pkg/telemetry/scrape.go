package telemetry

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of scrapes by Prometheus.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Handler serves the metrics in the format of Prometheus; it is nil without Options.Prometheus. Names are those of
// OpenTelemetry with "_" for ".", and with their unit: toolctl.call.duration becomes toolctl_call_duration_seconds. It
// also serves the usual metrics of the Go runtime and of the process.
func (t *Telemetry) Handler() http.Handler {
	if t == nil || t.scraped == nil {
		return nil
	}
	return promhttp.HandlerFor(t.scraped, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(t.log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError, // partial metrics are better than no metrics
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
	})
}

// Serve serves Handler at GET /metrics and closes the listener when it ends. The returned function stops the server and
// waits for it.
//
// Other machines have access without a token: scrapers usually run on other machines, nothing can be called there, and
// the metrics contain only names of tools, policies and servers, and counts; they contain no arguments, principals or
// sessions.
func (t *Telemetry) Serve(ln net.Listener, admit func(metrics http.Handler) http.Handler) (stop func()) {
	metrics, log := t.Handler(), slog.New(slog.DiscardHandler)
	if metrics == nil {
		metrics = http.NotFoundHandler()
	} else {
		log = t.log
	}
	if at, ok := ln.Addr().(*net.TCPAddr); ok && at.IP.IsLoopback() {
		metrics = localOnly(metrics)
	}
	srv := &http.Server{Handler: admit(metrics), ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(ln) // ends with stop
	}()
	return func() {
		_ = srv.Close() // a running scrape may fail
		<-ended
	}
}

// localOnly refuses requests with a host name other than this machine's, which a web page could cause by DNS rebinding.
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

package main

import (
	"log/slog"

	"toolctl.dev/toolctl/pkg/telemetry"
)

// accessLogs are the values of --access-log.
var accessLogs = []string{"json", "text", "none"}

// newAccessLog returns the log that takes a line for each call, nil for none.
func (o *serveOptions) newAccessLog() *slog.Logger {
	format := o.accessLog
	if format == "" && o.http != "" {
		format = "json"
	}
	switch format {
	case "json":
		return slog.New(telemetry.LogHandler(slog.NewJSONHandler(o.err, nil)))
	case "text":
		return slog.New(telemetry.LogHandler(slog.NewTextHandler(o.err, nil)))
	}
	return nil
}

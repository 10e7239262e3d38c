package main

import (
	"io"
	"log/slog"

	"toolctl.dev/toolctl/internal/lines"
	"toolctl.dev/toolctl/pkg/telemetry"
)

// accessLogs are the values of --access-log.
var accessLogs = []string{"json", "text", "none"}

// newAccessLog returns what takes a line for each call, nil for none, and what writes the
// last lines.
func (o *serveOptions) newAccessLog() (*slog.Logger, io.Closer) {
	format := o.accessLog
	if format == "" && o.http != "" {
		format = "json"
	}
	out := lines.New(o.err)
	switch format {
	case "json":
		return slog.New(telemetry.LogHandler(slog.NewJSONHandler(out, nil))), out
	case "text":
		return slog.New(telemetry.LogHandler(slog.NewTextHandler(out, nil))), out
	}
	return nil, out
}

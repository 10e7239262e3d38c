package mcp

import (
	"context"
	"time"
)

type pollingKey struct{}

type polling struct {
	begun func()
	poll  func(after time.Duration)
}

// WithPolling returns a context for a request of a client that can poll. begun is called when a server gets
// a request. poll is called when the server closes the stream of its response and states after how long the
// stream can be resumed (MCP specification 2025-11-25, basic/transports, sending messages). Both may be
// called more than once.
func WithPolling(ctx context.Context, begun func(), poll func(after time.Duration)) context.Context {
	return context.WithValue(ctx, pollingKey{}, polling{begun, poll})
}

// asked tells the polling client, if any, that a server gets a request.
func asked(ctx context.Context) {
	if p, ok := ctx.Value(pollingKey{}).(polling); ok {
		p.begun()
	}
}

// polled makes the client of a request poll, if it can.
func polled(ctx context.Context, after time.Duration) {
	if p, ok := ctx.Value(pollingKey{}).(polling); ok {
		p.poll(after)
	}
}

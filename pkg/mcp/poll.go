package mcp

import (
	"context"
	"time"
)

type pollingKey struct{}

// WithPolling returns a context for a request of a client that can poll: poll is called when the server
// closes the stream of its answer and says after how long the stream can be taken up again (MCP
// specification 2025-11-25, basic/transports, sending messages). It may be called more than once.
func WithPolling(ctx context.Context, poll func(after time.Duration)) context.Context {
	return context.WithValue(ctx, pollingKey{}, poll)
}

// polled has the client of a request poll, if it can.
func polled(ctx context.Context, after time.Duration) {
	if poll, ok := ctx.Value(pollingKey{}).(func(time.Duration)); ok {
		poll(after)
	}
}

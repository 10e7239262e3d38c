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

// WithPolling returns a context for a request of a client that can poll: begun is called when a server is
// asked, and poll when the server closes the stream of its answer and says after how long the stream can
// be taken up again (MCP specification 2025-11-25, basic/transports, sending messages). Both may be called
// more than once.
func WithPolling(ctx context.Context, begun func(), poll func(after time.Duration)) context.Context {
	return context.WithValue(ctx, pollingKey{}, polling{begun, poll})
}

// asked tells the client of a request that a server is asked.
func asked(ctx context.Context) {
	if p, ok := ctx.Value(pollingKey{}).(polling); ok {
		p.begun()
	}
}

// polled has the client of a request poll, if it can.
func polled(ctx context.Context, after time.Duration) {
	if p, ok := ctx.Value(pollingKey{}).(polling); ok {
		p.poll(after)
	}
}

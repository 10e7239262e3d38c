package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// statementTimeout ends a statement that takes too long at the server.
	statementTimeout = 30 * time.Second
	// silence is how much longer a server may take to say so.
	silence = 2 * time.Second
	// callTimeout is the same for a statement that a call waits for, which may take 30 seconds and has
	// some of them.
	callTimeout = 5 * time.Second
	// silentTimeout is callTimeout once such a statement was not answered, until one is.
	silentTimeout = time.Second
	// leaseTimeout is for the leases, which last five seconds.
	leaseTimeout = 2 * time.Second
	// closeTimeout is how long the connections may take to end.
	closeTimeout = time.Second
)

// deadlines gives each statement a time after which it is not waited for: a server that stands still, or is out of
// reach, does not say that it has taken too long.
type deadlines struct{}

type endKey struct{}

func begin(ctx context.Context) context.Context {
	ctx, end := context.WithTimeout(ctx, statementTimeout+silence)
	return context.WithValue(ctx, endKey{}, end)
}

func end(ctx context.Context) {
	if end, ok := ctx.Value(endKey{}).(context.CancelFunc); ok {
		end()
	}
}

func (deadlines) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return begin(ctx)
}
func (deadlines) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) { end(ctx) }

func (deadlines) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return begin(ctx)
}
func (deadlines) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData)     {}
func (deadlines) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) { end(ctx) }

func (deadlines) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return begin(ctx)
}

func (deadlines) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromEndData) {
	end(ctx)
}

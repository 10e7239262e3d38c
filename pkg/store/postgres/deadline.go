package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// statementTimeout ends a slow statement on the server.
	statementTimeout = 30 * time.Second
	// silence is the extra time for the server to report its timeout.
	silence = 2 * time.Second
	// callTimeout is the same for a statement that a call waits for. A call may take 30 seconds and executes several of
	// them.
	callTimeout = 5 * time.Second
	// silentTimeout replaces callTimeout after such a statement was not answered, until one is answered.
	silentTimeout = time.Second
	// leaseTimeout is the timeout for leases, which last five seconds.
	leaseTimeout = 2 * time.Second
	// closeTimeout is the maximum time to close the connections.
	closeTimeout = time.Second
)

// deadlines gives each statement a client-side deadline, because a frozen or unreachable server cannot report a
// timeout.
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

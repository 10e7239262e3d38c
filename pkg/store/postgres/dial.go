package postgres

import (
	"context"
	"net"
	"time"
)

const (
	// userTimeout is how long what was sent may stay without an acknowledgement before the connection ends.
	userTimeout = 10 * time.Second
	// Probes of a connection that is silent begin after keepIdle and come every keepEvery; it ends after
	// as many as keepCount without an answer.
	keepIdle, keepEvery, keepCount = 5 * time.Second, 2 * time.Second, 3
)

// dial connects to a server. The kernel ends a connection on whose way nothing arrives any more, which else
// would be waited for.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepIdle, Interval: keepEvery, Count: keepCount},
		Control:         limitSilence,
	}
	return d.DialContext(ctx, network, address)
}

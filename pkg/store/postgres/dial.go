package postgres

import (
	"context"
	"net"
	"time"
)

const (
	// userTimeout is how long sent data may stay unacknowledged before the connection ends.
	userTimeout = 10 * time.Second
	// Keepalive probes of an idle connection start after keepIdle and repeat every keepEvery. The connection ends after
	// keepCount probes without an answer.
	keepIdle, keepEvery, keepCount = 5 * time.Second, 2 * time.Second, 3
)

// dial connects to a server. It makes the kernel end a connection whose network path is dead, for which the process
// would wait otherwise.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepIdle, Interval: keepEvery, Count: keepCount},
		Control:         limitSilence,
	}
	return d.DialContext(ctx, network, address)
}

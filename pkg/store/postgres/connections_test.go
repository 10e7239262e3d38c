package postgres

import (
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// TestConnections: by default 10 gateways, one more during an upgrade and 2 operators need no more connections than
// PostgreSQL has for users: max_connections (100) without superuser_reserved_connections (3).
func TestConnections(t *testing.T) {
	if all := (10 + 1 + 2) * store.DefaultConnections; all > 97 {
		t.Errorf("%d connections", all)
	}
	const dsn = "postgres://ann@127.0.0.1:1/db"
	for _, tt := range []struct {
		dsn  string
		most int
		want int32 // of the pool, without the one that listens
	}{
		{dsn, 0, store.DefaultConnections - 1}, {dsn + "?pool_max_conns=20", 0, 20}, {dsn + "?pool_max_conns=20", 5, 4}, {dsn, 3, 2}, {dsn, 1 << 40, 1<<31 - 1},
	} {
		config, err := parseDSN(tt.dsn, time.Second, tt.most)
		if err != nil || config.MaxConns != tt.want {
			t.Errorf("%s with %d: got %d, %v, want %d", tt.dsn, tt.most, config.MaxConns, err, tt.want)
		}
	}
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"toolctl.dev/toolctl/pkg/store"
)

const (
	// connectTimeout is the connection timeout per host, unless connect_timeout is given.
	connectTimeout = 5 * time.Second
)

// parseDSN parses a DSN and the PG variables. Its errors do not show the DSN, which may contain a password.
func parseDSN(dsn string, busy time.Duration, most int) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("store: the address of a PostgreSQL database cannot be read: %s: expected postgres://USER@HOST:PORT/DATABASE, the password in PGPASSWORD or ~/.pgpass", parseCause(err))
	}
	if most == 0 && !strings.Contains(dsn, "pool_max_conns=") {
		most = store.DefaultConnections
	}
	if most > 0 {
		config.MaxConns = int32(min(max(most-1, 1), math.MaxInt32)) //nolint:gosec // it is within; one more listens
	}
	c := config.ConnConfig
	if c.ConnectTimeout == 0 || c.ConnectTimeout > time.Minute { // the default of pgx is 2 minutes
		c.ConnectTimeout = connectTimeout
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "toolctl"
	}
	c.DialFunc, c.Tracer = dial, deadlines{}
	if c.ValidateConnect == nil && severalHosts(c) {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	// The limits use SET, because poolers refuse unknown parameters in the startup message.
	limits := fmt.Sprintf("SET statement_timeout = %d; SET lock_timeout = %d; SET idle_in_transaction_session_timeout = %[1]d",
		statementTimeout.Milliseconds(), max(busy.Milliseconds(), 1))
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, limits).ReadAll()
		return err
	}
	return config, nil
}

// parseCause returns the cause of a DSN error without the DSN.
func parseCause(err error) string {
	var e *pgconn.ParseConfigError
	if !errors.As(err, &e) {
		return "it is not valid" // an error of the pool settings; the text may quote the DSN
	}
	text := e.Error()
	if why := e.Unwrap(); why != nil { // the outer error may quote a part of the DSN
		text = strings.TrimSuffix(text, " ("+why.Error()+")")
	}
	return text[strings.LastIndex(text, "`: ")+len("`: "):]
}

// severalHosts reports whether the DSN names several hosts. A store must be writable, so the connection must use the
// host that accepts writes.
func severalHosts(c *pgx.ConnConfig) bool {
	for _, f := range c.Fallbacks {
		if f.Host != c.Host || f.Port != c.Port {
			return true
		}
	}
	return false
}

// nameOf returns the name of a store for messages: its hosts and its database, without secrets.
func nameOf(c *pgx.ConnConfig) string {
	var hosts []string
	add := func(host string, port uint16) {
		at := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if strings.HasPrefix(host, "/") {
			at = host
		}
		if slices.Contains(hosts, at) {
			return
		}
		hosts = append(hosts, at)
	}
	add(c.Host, c.Port)
	for _, f := range c.Fallbacks {
		add(f.Host, f.Port)
	}
	return "postgres://" + strings.Join(hosts, ",") + "/" + c.Database
}

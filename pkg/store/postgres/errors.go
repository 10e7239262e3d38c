package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// SQLSTATEs (postgresql.org/docs/current/errcodes-appendix.html).
const (
	codeLimit      = "TC001" // raised by toolctl_append
	codeDiskFull   = "53100"
	codeReadOnly   = "25006"
	codeLockWait   = "55P03"
	codeCancelled  = "57014" // by statement_timeout
	codeDeadlock   = "40P01"
	codePrivilege  = "42501"
	classShutdown  = "57P"
	classResources = "53"
	classConnect   = "08"
)

// explain adds the name of the store and advice to an error. Errors about objects stay unchanged.
func (s *Store) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if own := new(plan.Refusal); errors.As(err, &own) {
		return own.Err
	}
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
	}
	switch {
	case errors.Is(err, store.ErrNewer), errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrTooOld), errors.Is(err, store.ErrLimit), errors.Is(err, errMissing), errors.Is(err, errNoUsage), errors.Is(err, errNotOwner), errors.Is(err, store.ErrUnavailable):
		return fmt.Errorf("store %q: %w", s.name, err)
	case ctx.Err() != nil:
		return fmt.Errorf("store %q: %w", s.name, context.Cause(ctx))
	case away(err):
		return fmt.Errorf("store %q: the database %w: %s", s.name, store.ErrUnavailable, oneLine(err))
	}
	switch codeOf(err) {
	case codeLimit:
		return fmt.Errorf("store %q: %w of %d bytes, nothing was changed: delete old audit records with 'toolctl audit prune --before', or raise --store-max-bytes", s.name, store.ErrLimit, s.max)
	case codeDiskFull:
		return fmt.Errorf("store %q: %w, nothing was changed (%w): free disk space and try again", s.name, store.ErrFull, err)
	case codeReadOnly:
		s.pool.Reset() // another host may be writable now
		return fmt.Errorf("store %q: the database is read-only (%w): connect to the primary, or list all hosts with target_session_attrs=read-write", s.name, err)
	case codeLockWait:
		return fmt.Errorf("store %q: %w: try again (%w)", s.name, store.ErrBusy, err)
	case codePrivilege:
		return s.noRight(err)
	}
	return fmt.Errorf("store %q: %w", s.name, err)
}

// noRight names the right that a user lacks, and the statements that grant it.
func (s *Store) noRight(err error) error {
	c := s.pool.Config().ConnConfig
	user, schema := pgx.Identifier{c.User}.Sanitize(), cmp.Or(c.RuntimeParams["search_path"], "public")
	var refused *pgconn.PgError
	errors.As(err, &refused)
	what := refused.Message // for example: permission denied for table toolctl_heads
	if strings.Contains(what, "schema") {
		return fmt.Errorf("store %q: the user %q may not create or change its tables (%s): run 'toolctl store migrate' once as a user with CREATE on the schema, or let this one: GRANT USAGE, CREATE ON SCHEMA %s TO %s", s.name, c.User, what, schema, user)
	}
	return fmt.Errorf("store %q: the user %q may not do that (%s): let the owner of the tables run: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s; who only reads needs SELECT alone", s.name, c.User, what, schema, user)
}

// errNoUsage says that a user may not use the schema of the store.
var errNoUsage = errors.New("may not look into its schema")

// oneLine returns the text of a connection error, which has a line for each address, in one line.
func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", " ")), " ")
}

func codeOf(err error) string {
	if e := new(pgconn.PgError); errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// away reports whether the database cannot be reached or did not answer in time.
func away(err error) bool {
	if c := new(pgconn.ConnectError); errors.As(err, &c) {
		return true
	}
	code := codeOf(err)
	return ended(err) || code == codeCancelled || errors.Is(err, context.DeadlineExceeded) || code != codeDiskFull && strings.HasPrefix(code, classResources)
}

// ended reports whether an error means that the connection ended.
func ended(err error) bool {
	if c := new(pgconn.ConnectError); errors.As(err, &c) {
		return false // there was no connection
	}
	code := codeOf(err)
	if code != "" {
		return strings.HasPrefix(code, classShutdown) || strings.HasPrefix(code, classConnect)
	}
	var netErr net.Error
	return errors.As(err, &netErr) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// undone reports whether a statement was certainly not executed, for a temporary reason. A server that shuts down
// reports this itself.
func undone(err error) bool {
	if c := new(pgconn.ConnectError); errors.As(err, &c) {
		return false // there was no connection, and the next attempt would wait as long
	}
	code := codeOf(err)
	return pgconn.SafeToRetry(err) || code == codeDeadlock || strings.HasPrefix(code, classShutdown)
}

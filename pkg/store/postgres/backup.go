package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Backup implements [store.Backuper]. It returns an error that names the program to use.
func (s *Store) Backup(context.Context, string) error {
	return fmt.Errorf("a PostgreSQL database is backed up by pg_dump while it is used, as in: pg_dump --format=custom --table='toolctl_*' --file=FILE %s: %w", s.name, errors.ErrUnsupported)
}

// Compact implements [store.Compacter]. A table is locked while it is rewritten; the user must own it
// (postgresql.org/docs/current/sql-vacuum.html).
func (s *Store) Compact(ctx context.Context) error {
	c := s.pool.Config().ConnConfig // without the time limits of the pool
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return s.explain(ctx, err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // what was done is done
	var owner string                             // the server skips tables of other owners with a warning
	switch err := conn.QueryRow(ctx, "SELECT pg_get_userbyid(relowner)"+ours+" AND NOT pg_has_role(relowner, 'USAGE') LIMIT 1").Scan(&owner); {
	case err == nil:
		return s.explain(ctx, fmt.Errorf("the user %q %w: do that as its owner, %q", c.User, errNotOwner, owner))
	case !errors.Is(err, pgx.ErrNoRows):
		return s.explain(ctx, err)
	}
	rows, _ := conn.Query(ctx, "SELECT oid::regclass::text"+ours) // rows reports the error
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for i := 0; err == nil && i < len(tables); i++ {
		_, err = conn.Exec(ctx, "VACUUM (FULL, ANALYZE) "+tables[i])
	}
	return s.explain(ctx, err)
}

// errNotOwner says that a user cannot compact the tables.
var errNotOwner = errors.New("does not own the tables")

// ours selects the tables of the store.
const ours = ` FROM pg_class WHERE relkind = 'r' AND relname LIKE 'toolctl\_%' AND relnamespace = current_schema()::regnamespace`

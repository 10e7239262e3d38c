package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
)

//go:embed migrations/*.sql
var migrations embed.FS

// versions is the table in which goose stores the executed migrations.
const versions = "toolctl_migrations"

// migrationLock is the advisory lock for migrations: "toolctl" in ASCII.
const migrationLock = 0x746f6f6c63746c

// errMissing is an [fs.ErrNotExist]; some connection errors are too.
var errMissing = fmt.Errorf("%w in the database: create it with \"toolctl apply -f PATH\" or \"toolctl store migrate\"", fs.ErrNotExist)

// migrate migrates the store to the newest version that this program knows. With create it creates a missing store.
func (s *Store) migrate(ctx context.Context, create bool) error {
	newest, err := sqlstore.NewestMigration(migrations)
	if err != nil {
		return err
	}
	at, err := s.version(ctx)
	switch {
	case err != nil:
		return err
	case at < 0 && !create:
		return errMissing
	case at < newest:
		if at, err = s.migrateUp(ctx); err != nil {
			return err
		}
	}
	if at > newest {
		return fmt.Errorf("%w: it has version %d, and this toolctl supports versions up to %d: use a newer toolctl", store.ErrNewer, at, newest)
	}
	return nil
}

// migrateUp migrates while it holds the lock, which excludes all other processes. The lock belongs to a transaction,
// because a pooler may give each statement another session.
func (s *Store) migrateUp(ctx context.Context) (at int64, err error) {
	held, err := s.begin(ctx, pgx.TxOptions{})
	if err != nil {
		return 0, err
	}
	defer held.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // it changed nothing
	if _, err := held.Exec(ctx, "SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)"); err != nil {
		return 0, err
	}
	if _, err := held.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
		return 0, err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	db := stdlib.OpenDB(*s.pool.Config().ConnConfig) // without the time limits of the pool
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(versions), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return 0, err
	}
	if _, err := p.Up(ctx); err != nil {
		if at, verr := s.version(ctx); verr == nil && at >= 0 {
			if newest, nerr := sqlstore.NewestMigration(migrations); nerr == nil && at > newest {
				return at, nil // migrated to a newer version while we waited; the caller reports it
			}
		}
		return 0, errors.Join(errors.New("the store cannot be upgraded"), err)
	}
	return s.version(ctx)
}

// version returns the version of the last executed migration, or -1 without a store.
func (s *Store) version(ctx context.Context) (at int64, err error) {
	tx, err := s.begin(ctx, pgx.TxOptions{})
	if err != nil {
		return 0, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // it changed nothing
	var there bool
	if err := tx.QueryRow(ctx, "SELECT to_regclass('"+versions+"') IS NOT NULL").Scan(&there); err != nil {
		return -1, err
	}
	if !there {
		return -1, s.noUsage(ctx, tx)
	}
	err = tx.QueryRow(ctx, "SELECT coalesce(max(version_id), -1) FROM "+versions+" WHERE is_applied AND version_id > 0").Scan(&at)
	return at, err
}

// noUsage returns errNoUsage if the store is invisible because the user may not use its schema.
func (s *Store) noUsage(ctx context.Context, tx pgx.Tx) error {
	var user, schema string
	const hidden = `SELECT current_user, quote_ident(nspname) FROM pg_namespace WHERE NOT has_schema_privilege(oid, 'USAGE')
		AND quote_ident(nspname) = ANY (string_to_array(replace(current_setting('search_path'), ' ', ''), ',')) LIMIT 1`
	err := tx.QueryRow(ctx, hidden).Scan(&user, &schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("the user %q %w: let its owner run: GRANT USAGE ON SCHEMA %s TO %s", user, errNoUsage, schema, pgx.Identifier{user}.Sanitize())
}

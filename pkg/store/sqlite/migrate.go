package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks the file as a toolctl store; the first migration writes it.
const applicationID = 1953460076

// migrate migrates the store to the newest version that this program knows.
//
// One query checks whether it already has this version, as it nearly always does: goose would need more time for that
// than a whole short command.
func (s *Store) migrate(ctx context.Context) error {
	newest, err := sqlstore.NewestMigration(migrations)
	if err != nil {
		return err
	}
	at, err := s.version(ctx)
	if err != nil {
		return err
	}
	for at < newest {
		before := at
		upErr := s.retry(ctx, func() error {
			// The file keeps these modes, the first only if it is set at creation. They are set here instead of on
			// opening, because a file of another program must stay unchanged.
			if _, err := s.db.ExecContext(ctx, "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL"); err != nil {
				return err
			}
			return migrateUp(ctx, s.db)
		})
		if at, err = s.version(ctx); err != nil {
			return errors.Join(upErr, err)
		}
		// Another process may have executed the same migration concurrently. Then ours failed, but the version has
		// increased.
		if at == before {
			return errors.Join(fmt.Errorf("cannot be upgraded to version %d", newest), upErr)
		}
	}
	if at > newest {
		return fmt.Errorf("%w: it has version %d, and this toolctl supports versions up to %d: use a newer toolctl", store.ErrNewer, at, newest)
	}
	return nil
}

func migrateUp(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// version returns the version of the last executed migration, or -1 for an empty file. It uses one transaction, because
// another process may be migrating.
func (s *Store) version(ctx context.Context) (at int64, err error) {
	err = s.withConn(ctx, func(c *sql.Conn) error {
		return s.retry(ctx, func() error {
			return s.transact(ctx, c, "BEGIN", func(c *sql.Conn) (err error) {
				at, err = readVersion(ctx, c)
				return err
			})
		})
	})
	return at, err
}

func readVersion(ctx context.Context, c *sql.Conn) (int64, error) {
	var id, tables, goosed int64
	err := c.QueryRowContext(ctx, `SELECT application_id, (SELECT count(*) FROM sqlite_schema),
		(SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version') FROM pragma_application_id`).Scan(&id, &tables, &goosed)
	switch {
	case err != nil:
		return 0, err
	case id == 0 && tables == 0:
		return -1, nil
	case id != applicationID && (id != 0 || goosed == 0), goosed == 0:
		return 0, fmt.Errorf("%w: it is a database of another program: choose another file with --store", store.ErrDamaged)
	}
	var at int64
	err = c.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&at)
	if err == nil && at > 0 && id != applicationID {
		err = fmt.Errorf("%w: it is a database of another program: choose another file with --store", store.ErrDamaged)
	}
	return at, err
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"modernc.org/sqlite"

	"toolctl.dev/toolctl/internal/regular"
)

// CheckData implements [store.Checker] with SQLite's own check of the file.
func (s *Store) CheckData(ctx context.Context) (problems []string, err error) {
	err = s.explain(ctx, s.withConn(ctx, func(c *sql.Conn) error {
		rows, err := c.QueryContext(ctx, "PRAGMA integrity_check(20)") // sqlite.org/pragma.html#pragma_integrity_check
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return err
			}
			if text != "ok" {
				problems = append(problems, "file: "+text)
			}
		}
		return rows.Err()
	}))
	return problems, err
}

// Backup implements [store.Backuper].
func (s *Store) Backup(ctx context.Context, path string) error {
	// SQLite would create the file with the permissions of the umask, but it accepts an empty file.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("backup %q: %w, and is not overwritten: name another file", path, regular.Reason(err))
	}
	if err != nil {
		return fmt.Errorf("backup %q: cannot create the file: %w", path, regular.Reason(err))
	}
	err = f.Close()
	if err == nil {
		err = s.explain(ctx, s.withConn(ctx, func(c *sql.Conn) error {
			_, err := c.ExecContext(ctx, "VACUUM INTO ?", path) // sqlite.org/lang_vacuum.html#vacuuminto
			return err
		}))
	}
	if err == nil {
		err = s.explain(ctx, useWAL(ctx, path))
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// useWAL sets the journal mode of a copy, which VACUUM INTO does not preserve.
func useWAL(ctx context.Context, path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	connector, err := sqlite.NewConnector(driverDSN(abs, 0))
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	_, err = db.ExecContext(ctx, "PRAGMA journal_mode=WAL")
	return errors.Join(err, db.Close())
}

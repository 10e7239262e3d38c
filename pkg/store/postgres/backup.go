package postgres

import (
	"context"
	"errors"
	"fmt"
)

// Backup implements [store.Backuper]: the error says what does it.
func (s *Store) Backup(context.Context, string) error {
	return fmt.Errorf("a PostgreSQL database is backed up by pg_dump while it is used, as in: pg_dump --format=custom --table='toolctl_*' --file=FILE %s: %w here", s.name, errors.ErrUnsupported)
}

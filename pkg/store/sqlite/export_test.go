package sqlite

import (
	"database/sql"

	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
)

// OpenStore is Open for what the interface does not have.
var OpenStore = open

// DB lets a test set a connection's limits. SetMaxOpenConns(1) comes first.
func (s *Store) DB() *sql.DB { return s.db }

// NewestMigration is the version that a new store has.
func NewestMigration() (int64, error) { return sqlstore.NewestMigration(migrations) }

// HoldWriter keeps the writers of this process waiting until release is called.
func (s *Store) HoldWriter() (release func()) {
	s.gate <- struct{}{}
	return func() { <-s.gate }
}

// WaitingShorts is how many short writes wait for the writer.
func (s *Store) WaitingShorts() int {
	s.shorts.mu.Lock()
	defer s.shorts.mu.Unlock()
	return len(s.shorts.waiting)
}

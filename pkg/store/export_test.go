package store

import "database/sql"

// DB lets a test set a connection's limits. SetMaxOpenConns(1) comes first.
func (s *Store) DB() *sql.DB { return s.db }

// SameJSON is sameJSON for a property test.
var SameJSON = sameJSON

// NewestMigration is the version that a new store has.
var NewestMigration = newestMigration

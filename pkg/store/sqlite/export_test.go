package sqlite

import (
	"context"
	"database/sql"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/sqlstore"
)

// OpenStore is Open with the concrete type.
var OpenStore = open

// DB lets a test set a connection's limits. SetMaxOpenConns(1) comes first.
func (s *Store) DB() *sql.DB { return s.db }

// NewestMigration is the version of a new store.
func NewestMigration() (int64, error) { return sqlstore.NewestMigration(migrations) }

// HoldWriter blocks the writers of this process until release is called.
func (s *Store) HoldWriter() (release func()) {
	s.gate <- struct{}{}
	return func() { <-s.gate }
}

// WaitingShorts returns the number of short writes that wait for the writer.
func (s *Store) WaitingShorts() int { return s.shorts.Waiting() }

// AuditPlans returns the queries on the audit log with their SQLite plans.
func (s *Store) AuditPlans(ctx context.Context, filter store.AuditFilter) (plans []string, err error) {
	planned := sqlstore.New(planning{backend{s}, &plans}, dialect, 0)
	err = planned.EachAudit(ctx, filter, func(store.AuditLine) error { return nil })
	return plans, err
}

type planning struct {
	backend
	plans *[]string
}

func (p planning) Read(ctx context.Context, fn func(sqlstore.Tx) error) error {
	return p.backend.Read(ctx, func(t sqlstore.Tx) error { return fn(planningTx{t, p.plans}) })
}

type planningTx struct {
	sqlstore.Tx
	plans *[]string
}

func (t planningTx) Query(query string, args ...any) (sqlstore.Rows, error) {
	rows, err := t.Tx.Query("EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	plan := query + "\n"
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return nil, err
		}
		plan += detail + "\n"
	}
	*t.plans = append(*t.plans, plan)
	return t.Tx.Query(query, args...)
}

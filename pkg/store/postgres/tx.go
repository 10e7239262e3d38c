package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toolctl.dev/toolctl/pkg/store"
)

// beginDurable begins a transaction that is on the disk once it is committed, regardless of the DSN.
const beginDurable = "BEGIN; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"

// write runs fn in one durable transaction and commits it if fn returns nil.
func (s *Store) write(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return s.explain(ctx, s.transact(ctx, pgx.TxOptions{BeginQuery: beginDurable}, fn))
}

// read runs fn on a consistent snapshot of the store.
func (s *Store) read(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return s.explain(ctx, s.transact(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn))
}

func (s *Store) transact(ctx context.Context, opts pgx.TxOptions, fn func(tx pgx.Tx) error) error {
	tx, err := s.begin(ctx, opts)
	if err != nil {
		return err
	}
	// The end of ctx decides between the two outcomes. It must not interrupt the commit, because its result would then
	// be unknown.
	end := func(how func(context.Context) error) error {
		final, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
		defer cancel()
		return how(final)
	}
	defer end(tx.Rollback) //nolint:errcheck // after a commit it does nothing; else the server rolls back when the connection ends
	if err := fn(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return end(tx.Commit)
}

// begin begins a transaction. It skips pooled connections that have ended.
func (s *Store) begin(ctx context.Context, opts pgx.TxOptions) (tx pgx.Tx, err error) {
	for range s.conns + 1 {
		if tx, err = s.pool.BeginTx(ctx, opts); err == nil || !ended(err) || ctx.Err() != nil {
			return tx, err
		}
	}
	return nil, err
}

// one executes a statement, which is its own transaction, with its own timeout: the end of ctx must not leave its
// result unknown. It is not retried if it may have been executed.
func (s *Store) one(ctx context.Context, query string, args []any, into ...any) error {
	return s.look(context.WithoutCancel(ctx), query, args, into...)
}

// look executes a statement that changes nothing. The end of ctx ends it.
func (s *Store) look(ctx context.Context, query string, args []any, into ...any) error {
	limit := callTimeout
	if s.silent.Load() {
		limit = silentTimeout
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return s.within(within, query, args, into...)
}

// within executes a statement until ctx ends.
func (s *Store) within(ctx context.Context, query string, args []any, into ...any) (err error) {
	for range s.conns + 1 {
		if err = s.pool.QueryRow(ctx, query, args...).Scan(into...); err == nil || !undone(err) {
			break
		}
	}
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		s.silent.Store(err != nil)
	}
	return err
}

// Ping checks whether the database answers: see [store.Ping].
func (s *Store) Ping(ctx context.Context) error {
	err := s.within(ctx, "SELECT 1", nil, new(int))
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("store %q: the database %w: it did not answer in time", s.name, store.ErrUnavailable)
	}
	return s.explain(ctx, err)
}

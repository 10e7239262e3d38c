package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toolctl.dev/toolctl/pkg/store"
)

// beginDurable begins a transaction that is on the disk once it is committed, whatever the DSN says.
const beginDurable = "BEGIN; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"

// write runs fn in one transaction and commits it, on the disk, when fn returns nil.
func (s *Store) write(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return s.explain(ctx, s.transact(ctx, pgx.TxOptions{BeginQuery: beginDurable}, fn))
}

// read runs fn on one unchanging view of the store.
func (s *Store) read(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return s.explain(ctx, s.transact(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn))
}

func (s *Store) transact(ctx context.Context, opts pgx.TxOptions, fn func(tx pgx.Tx) error) error {
	tx, err := s.begin(ctx, opts)
	if err != nil {
		return err
	}
	// The end of ctx decides between the two outcomes. It must not interrupt the commit, or
	// nobody would know whether it was carried out.
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

// begin begins a transaction. Connections of the pool that ended meanwhile are passed over.
func (s *Store) begin(ctx context.Context, opts pgx.TxOptions) (tx pgx.Tx, err error) {
	for range s.conns + 1 {
		if tx, err = s.pool.BeginTx(ctx, opts); err == nil || !ended(err) || ctx.Err() != nil {
			return tx, err
		}
	}
	return nil, err
}

// one carries out one statement, which is a transaction of its own, within a time of its own: the
// end of ctx must not leave it open whether it was carried out. It is not made again
// when it may have been.
func (s *Store) one(ctx context.Context, query string, args []any, into ...any) error {
	return s.look(context.WithoutCancel(ctx), query, args, into...)
}

// look is one for a statement that changes nothing: the end of ctx ends it.
func (s *Store) look(ctx context.Context, query string, args []any, into ...any) error {
	limit := callTimeout
	if s.silent.Load() {
		limit = silentTimeout
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return s.within(within, query, args, into...)
}

// within carries out a statement as long as ctx lasts.
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

// Ping asks the database whether it answers: see [store.Ping].
func (s *Store) Ping(ctx context.Context) error {
	err := s.within(ctx, "SELECT 1", nil, new(int))
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("store %q: the database %w: it did not answer in time", s.name, store.ErrUnavailable)
	}
	return s.explain(ctx, err)
}

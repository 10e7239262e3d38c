package postgres

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// noTimeouts lets a transaction take as long as it needs.
const noTimeouts = "SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)"

// CopyOut implements [store.Copier].
func (s *Store) CopyOut(ctx context.Context, read func(store.Rows) error) error {
	return s.read(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, noTimeouts); err != nil {
			return err
		}
		var hashed bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM toolctl_counters WHERE octet_length(key) > $1)", maxKey).Scan(&hashed); err != nil {
			return err
		}
		if hashed {
			return fmt.Errorf("store %q: a count has a key of more than %d bytes, of which only a hash is kept: it cannot be copied; wait until it has expired", s.name, maxKey)
		}
		return read(func(t store.Table) iter.Seq2[[]any, error] { return tableRows(ctx, tx, t) })
	})
}

func tableRows(ctx context.Context, tx pgx.Tx, t store.Table) iter.Seq2[[]any, error] {
	from, columns := "toolctl_"+t.Name, slices.Clone(t.Columns)
	switch t.Name {
	case "last":
		from = `(SELECT '` + store.LastVersion + `' AS name, value, NULL::bytea AS hash FROM toolctl_revision WHERE name = 'objects'
			UNION ALL SELECT '` + store.LastLine + `', seq, NULL FROM toolctl_heads WHERE chain = '` + auditChain + `'
			UNION ALL SELECT '` + store.LastPruned + `', pruned, start FROM toolctl_heads WHERE chain = '` + auditChain + `') AS numbers`
	case "audit":
		columns[0], from = "seq", from+" WHERE chain = '"+auditChain+"' ORDER BY 1"
	case "approvals":
		from += " ORDER BY place"
	default:
		from += " ORDER BY 1"
	}
	return func(yield func([]any, error) bool) {
		rows, err := tx.Query(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM "+from)
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			if !yield(rows.Values()) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// CopyIn implements [store.Copier].
func (s *Store) CopyIn(ctx context.Context, tables []store.Table, rows store.Rows) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		for _, q := range []string{
			noTimeouts,
			"SELECT 1 FROM toolctl_heads FOR UPDATE", // nobody else writes meanwhile
			"SELECT 1 FROM toolctl_revision ORDER BY name FOR UPDATE",
		} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		for _, t := range tables {
			if err := fillTable(ctx, tx, t, rows(t)); err != nil {
				return err
			}
		}
		for _, q := range []string{
			`UPDATE toolctl_heads SET hash = coalesce((SELECT hash FROM toolctl_audit ORDER BY seq DESC LIMIT 1), start),
				bytes = (SELECT coalesce(sum(octet_length(record)), 0) FROM toolctl_audit)`,
			`UPDATE toolctl_revision SET bytes = (SELECT coalesce(sum(octet_length(manifest) + octet_length(origin)), 0) FROM toolctl_objects)
				+ (SELECT coalesce(sum(octet_length(manifest) + octet_length(origin)), 0) FROM toolctl_revision_objects) WHERE name = 'objects'`,
			"UPDATE toolctl_revision SET value = (SELECT coalesce(max(version), 0) FROM toolctl_overrides) WHERE name = 'overrides'",
		} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return s.room(ctx, tx)
	})
}

func fillTable(ctx context.Context, tx pgx.Tx, t store.Table, rows iter.Seq2[[]any, error]) error {
	if t.Name == "last" {
		return setLast(ctx, tx, rows)
	}
	var there bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM toolctl_"+t.Name+")").Scan(&there); err != nil {
		return err
	}
	if there {
		return store.ErrNotEmpty
	}
	columns := t.Columns
	if t.Name == "audit" {
		columns = append([]string{"seq"}, append(columns[1:len(columns):len(columns)], "chain")...)
	}
	next, stop := iter.Pull2(rows)
	defer stop()
	var read error
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"toolctl_" + t.Name}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		row, err, more := next()
		if read = err; !more || err != nil {
			return nil, err
		}
		for i, value := range row {
			if s, ok := value.(string); ok {
				row[i] = text(s)
			}
		}
		switch t.Name {
		case "audit":
			row = append(row, auditChain)
		case "counters":
			row[0] = keyOf(v1.Counter{Key: row[0].(string)})
		}
		return row, nil
	}))
	if read != nil {
		return read // of which the server's error has the text only
	}
	return err
}

// setLast sets the numbers that were given out last; what has had one is not empty.
func setLast(ctx context.Context, tx pgx.Tx, rows iter.Seq2[[]any, error]) error {
	var there bool
	const numbers = "SELECT EXISTS (SELECT 1 FROM toolctl_heads WHERE seq > 0) OR EXISTS (SELECT 1 FROM toolctl_revision WHERE name <> 'approvals' AND value > 0)"
	if err := tx.QueryRow(ctx, numbers).Scan(&there); err != nil {
		return err
	}
	if there {
		return store.ErrNotEmpty
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		switch row[0] {
		case store.LastVersion:
			_, err = tx.Exec(ctx, "UPDATE toolctl_revision SET value = $1 WHERE name = 'objects'", row[1])
		case store.LastLine:
			_, err = tx.Exec(ctx, "UPDATE toolctl_heads SET seq = $1 WHERE chain = $2", row[1], auditChain)
		case store.LastPruned:
			_, err = tx.Exec(ctx, "UPDATE toolctl_heads SET pruned = $1, start = coalesce($2, start) WHERE chain = $3", row[1], row[2], auditChain)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

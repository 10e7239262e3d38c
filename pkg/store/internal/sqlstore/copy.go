package sqlstore

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"toolctl.dev/toolctl/pkg/store"
)

// Copying has the statements that copies of a store need in addition to its tables.
type Copying struct {
	// Begin are statements before a copy is read or written, Alone those that block other writers, and End those after
	// it was written.
	Begin, Alone, End []string
	// Left is a query that reports whether something cannot be copied; Why says what.
	Left, Why string
	// Last is the query of the rows of the table "last". Given is the query that reports whether any of these numbers
	// is in use.
	Last, Given string
	// SetLast are the statements that set the numbers, by row name.
	SetLast map[string]string
}

// CopyOut implements [store.Copier].
func (m Methods) CopyOut(ctx context.Context, read func(store.Rows) error) error {
	return m.b.Read(ctx, func(tx Tx) error {
		if err := execAll(tx, m.d.Copying.Begin); err != nil {
			return err
		}
		var left bool
		if err := One(tx, []any{&left}, m.d.Copying.Left); err != nil {
			return err
		}
		if left {
			return errors.New(m.d.Copying.Why)
		}
		return read(func(t store.Table) iter.Seq2[[]any, error] { return m.tableRows(tx, t) })
	})
}

func execAll(tx Tx, statements []string) error {
	for _, s := range statements {
		if _, err := tx.Exec(s); err != nil {
			return err
		}
	}
	return nil
}

func (m Methods) tableRows(tx Tx, t store.Table) iter.Seq2[[]any, error] {
	from, columns := "toolctl_"+t.Name+" ORDER BY 1", slices.Clone(t.Columns)
	switch t.Name {
	case "last":
		from = "(" + m.d.Copying.Last + ") AS numbers"
	case "audit":
		columns[0], from = m.d.Line, m.d.Audit+" ORDER BY 1"
	case "approvals":
		from = "toolctl_approvals ORDER BY " + m.d.Place
	}
	return func(yield func([]any, error) bool) {
		rows, err := tx.Query("SELECT " + strings.Join(columns, ", ") + " FROM " + from)
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			row, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range row {
				into[i] = &row[i]
			}
			if !yield(row, rows.Scan(into...)) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// CopyIn implements [store.Copier].
func (m Methods) CopyIn(ctx context.Context, tables []store.Table, rows store.Rows) error {
	defer m.b.Notify()
	return m.b.Write(ctx, func(tx Tx) error {
		if err := execAll(tx, slices.Concat(m.d.Copying.Begin, m.d.Copying.Alone)); err != nil {
			return err
		}
		for _, t := range tables {
			if err := m.fill(tx, t, rows(t)); err != nil {
				return err
			}
		}
		if err := execAll(tx, m.d.Copying.End); err != nil {
			return err
		}
		return tx.Room()
	})
}

// fill fills a table that must be empty. None of the numbers in "last" may be in use.
func (m Methods) fill(tx Tx, t store.Table, rows iter.Seq2[[]any, error]) error {
	taken := "SELECT EXISTS (SELECT 1 FROM toolctl_" + t.Name + ")"
	if t.Name == "last" {
		taken = m.d.Copying.Given
	}
	var there bool
	if err := One(tx, []any{&there}, taken); err != nil {
		return err
	}
	if there {
		return store.ErrNotEmpty
	}
	if t.Name != "last" {
		return tx.Fill(t, rows)
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		name, _ := row[0].(string)
		args := row[1:2]
		if name == store.LastPruned {
			args = row[1:3]
		}
		if _, err := tx.Exec(m.d.Copying.SetLast[name], args...); err != nil {
			return err
		}
	}
	return nil
}

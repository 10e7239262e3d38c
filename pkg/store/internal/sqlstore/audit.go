package sqlstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
)

// condition is an SQL condition with its numbered values.
type condition struct {
	text string
	args []any
}

// and adds a condition, whose verbs are replaced by the numbers of the values.
func (c condition) and(format string, values ...any) condition {
	numbers := make([]any, len(values))
	for i := range values {
		numbers[i] = fmt.Sprintf("$%d", len(c.args)+i+1)
	}
	return condition{c.text + fmt.Sprintf(format, numbers...), append(c.args[:len(c.args):len(c.args)], values...)}
}

// chosen returns the filter without its limit and ID bounds. Each query has these only once, because SQLite uses only
// the first bound as a range of its index and reads past the records that others exclude.
func (m Methods) chosen(f store.AuditFilter) condition {
	c := condition{text: m.d.Audit + isLine}
	if !f.Since.IsZero() {
		// The expression prevents use of the time index, with which every page would sort all matching records.
		c = c.and(" AND time + 0 >= %s", f.Since.UnixMicro())
	}
	for _, of := range []struct{ column, value string }{{"tool", f.Tool}, {"session", f.Session}, {"principal", f.Principal}, {m.d.Namespace, f.Namespace}} {
		operator, value := "=", of.value
		if strings.ContainsAny(value, "*?") {
			operator, value = m.d.Glob(value)
		}
		if value != "" {
			c = c.and(" AND "+of.column+" "+operator+" %s", value)
		}
	}
	if f.Status != "" {
		c = c.and(" AND status = %s", f.Status)
	}
	if f.Settled {
		c = c.and(" AND (status <> %s OR "+m.d.Line+" IN (SELECT line FROM toolctl_audit_open))", v1.StatusStarted)
	}
	return c
}

// EachAudit implements [store.Audit].
func (m Methods) EachAudit(ctx context.Context, filter store.AuditFilter, fn func(store.AuditLine) error) error {
	if err := filter.Check(); err != nil {
		return err
	}
	chosen := m.chosen(filter)
	after, last := filter.After, int64(0)
	err := m.b.Read(ctx, func(tx Tx) error {
		if err := One(tx, []any{&last}, m.d.LastLine); err != nil {
			return err
		}
		if filter.UpTo > 0 {
			last = min(last, filter.UpTo)
		}
		from := func(c condition) error {
			var first *int64
			err := One(tx, []any{&first}, "SELECT min(line) FROM (SELECT "+m.d.Line+" AS line FROM "+c.text+") lines", c.args...)
			if first == nil {
				after = last
			} else {
				after = max(after, *first-1)
			}
			return err
		}
		if !filter.Since.IsZero() {
			if err := from(condition{text: m.d.Audit}.and(" AND time >= %s", filter.Since.UnixMicro())); err != nil {
				return err
			}
		}
		if filter.Limit == 0 {
			return nil
		}
		return from(m.between(chosen, after, last, "DESC", filter.Limit))
	})
	if err != nil {
		return err
	}
	return m.eachRow(ctx, chosen, after, last, func(r *chain.Row) (bool, error) {
		return true, fn(store.AuditLine{ID: r.ID, Hash: hex.EncodeToString(r.Hash), Text: r.Text})
	})
}

// between returns a query for the first records, in an order, after one ID and up to another.
func (m Methods) between(chosen condition, after, last int64, order string, most int) condition {
	return chosen.and(" AND "+m.d.Line+" > %s AND "+m.d.Line+" <= %s ORDER BY "+m.d.Line+" "+order+" LIMIT %s", after, last, most)
}

// eachRow calls fn for the records after one ID and up to another, in order, until fn returns false. It holds no
// transaction while fn runs.
func (m Methods) eachRow(ctx context.Context, chosen condition, after, last int64, fn func(*chain.Row) (more bool, err error)) error {
	for {
		page, err := m.auditPage(ctx, chosen, after, last)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if more, err := fn(&page[i]); err != nil || !more {
				return err
			}
			after = page[i].ID
		}
	}
}

// Limits of the audit records in memory at a time.
const (
	auditPageLines = 512
	auditPageBytes = 1 << 20
)

func (m Methods) auditPage(ctx context.Context, chosen condition, after, last int64) (page []chain.Row, err error) {
	next := m.between(chosen, after, last, "ASC", auditPageLines)
	err = m.b.Read(ctx, func(tx Tx) error {
		page = nil
		rows, err := tx.Query("SELECT "+m.d.Line+", time, tool, session, status, principal, record, hash FROM "+next.text, next.args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for size := 0; size < auditPageBytes && rows.Next(); {
			var r chain.Row
			if err := rows.Scan(&r.ID, &r.Time, &r.Tool, &r.Session, &r.Status, &r.Principal, &r.Text, &r.Hash); err != nil {
				return err
			}
			size += len(r.Text)
			page = append(page, r)
		}
		rows.Close()
		return rows.Err()
	})
	return page, err
}

// Verify verifies the chain from its first record to the last one that existed when begin read the state.
func (m Methods) Verify(ctx context.Context, head string, begin func(tx Tx, state *chain.State) (last int64, err error)) (check store.AuditCheck, last int64, err error) {
	v, err := chain.NewVerifier(head)
	if err != nil {
		return check, 0, err
	}
	var state chain.State
	err = m.b.Read(ctx, func(tx Tx) (err error) {
		state = chain.State{Open: map[string][]int64{}}
		if last, err = begin(tx, &state); err != nil {
			return err
		}
		// Lists of the audit log use these calls without an outcome.
		_, err = all(tx, func(row Rows) (_ struct{}, err error) {
			var call string
			var line int64
			err = row.Scan(&call, &line)
			state.Open[call] = append(state.Open[call], line)
			return struct{}{}, err
		}, "SELECT call_id, line FROM toolctl_audit_open ORDER BY line")
		return err
	})
	if err != nil {
		return check, 0, err
	}
	v.Start(state)
	// IDs that were forged may be below 1.
	if err := m.eachRow(ctx, condition{text: m.d.Audit}, -1<<63, last, func(r *chain.Row) (bool, error) { return v.Add(r), nil }); err != nil {
		return check, 0, err
	}
	return v.End(), last, nil
}

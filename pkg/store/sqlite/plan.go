package sqlite

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// event is a line of the change log.
type event struct {
	typ    store.EventType
	row    row
	before int64 // the resourceVersion before, 0 for none
}

// carryOut writes what the plan says, within the transaction that made it.
func (p *plan) carryOut(ctx context.Context, c *sql.Conn, keep int64) error {
	upsert := "INSERT OR REPLACE INTO objects (" + columns + ") VALUES (" + marks(11) + ")"
	err := each(ctx, c, upsert, p.upserts, func(r row) []any { return r.values() })
	if err != nil {
		return err
	}
	err = each(ctx, c, "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", p.gone,
		func(r row) []any { return []any{r.key.Kind, r.key.Namespace, r.key.Name} })
	if err != nil || len(p.log) == 0 {
		return err
	}
	// What compaction would remove at once is not written at all.
	log := p.log[max(int64(len(p.log))-keep, 0):]
	err = each(ctx, c, "INSERT INTO changes (type, "+columns+") VALUES ("+marks(12)+")", log,
		func(e event) []any { return append([]any{string(e.typ)}, e.row.values()...) })
	if err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "DELETE FROM changes WHERE resource_version <= ?", p.version-keep); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, "UPDATE revision SET value = ?", p.version)
	return err
}

// audit writes a line for each object that was changed. removal is what became of those
// that are gone.
func (p *plan) audit(ctx context.Context, c *sql.Conn, by, command, removal string) error {
	lines := make([]v1.AuditRecord, len(p.log))
	for i, e := range p.log {
		ch := &v1.AuditChange{Command: command, Kind: e.row.key.Kind, Name: e.row.key.Name, Set: e.row.set, From: e.before, To: e.row.version}
		switch e.typ {
		case store.Added:
			ch.Action = string(store.Created)
		case store.Modified:
			ch.Action = string(store.Configured)
		case store.Deleted:
			ch.Action = removal
		}
		lines[i] = changeLine(time.UnixMicro(e.row.updated).UTC(), by, e.row.key.Namespace, ch)
	}
	return addAudit(ctx, c, lines...)
}

// changeLine is the audit line of a change of the store.
func changeLine(at time.Time, by, namespace string, ch *v1.AuditChange) v1.AuditRecord {
	line := v1.AuditRecord{Time: at, CallID: rand.Text(), Principal: by, Namespace: namespace, Status: v1.StatusChanged, Change: ch}
	if ch.Kind == v1.KindTool {
		line.Tool = ch.Name
	}
	return line
}

// each carries out a statement for each item.
func each[T any](ctx context.Context, c *sql.Conn, query string, items []T, args func(T) []any) error {
	if len(items) == 0 {
		return nil
	}
	stmt, err := c.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for _, item := range items {
		if _, err := stmt.ExecContext(ctx, args(item)...); err != nil {
			return err
		}
	}
	return nil
}

func marks(n int) string { return strings.Repeat("?, ", n-1) + "?" }

// Delete removes objects, all of them or, when it returns an error, none, and
// returns them as they were, in the order of the keys. A missing object is a
// *[v1.NotFoundError]; when several are missing the error holds one for each.
// A key that is given twice counts once.
func (s *Store) Delete(ctx context.Context, keys []v1.Key, opts store.DeleteOptions) ([]store.Record, error) {
	var removed []store.Record
	err := s.write(ctx, true, func(c *sql.Conn) error {
		rows, err := rowsOf(ctx, c, keys)
		if err != nil {
			return err
		}
		p := &plan{}
		if p.version, err = revision(ctx, c); err != nil {
			return err
		}
		if removed, err = p.remove(rows, time.Now().UnixMicro()); err != nil {
			return err
		}
		if err := p.carryOut(ctx, c, s.keep); err != nil {
			return err
		}
		return p.audit(ctx, c, opts.By, cmp.Or(opts.Command, "delete"), "deleted")
	})
	if err != nil {
		return nil, err
	}
	if len(removed) > 0 {
		s.notifier.notify()
	}
	return removed, nil
}

func rowsOf(ctx context.Context, c *sql.Conn, keys []v1.Key) ([]row, error) {
	get, err := c.PrepareContext(ctx, "SELECT "+columns+" FROM objects WHERE kind = ? AND namespace = ? AND name = ?")
	if err != nil {
		return nil, err
	}
	defer get.Close()
	var rows []row
	var missing []error
	seen := make(map[v1.Key]bool, len(keys))
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		r, err := getRow(ctx, get, key)
		if err != nil {
			return nil, err
		}
		if r != nil {
			rows = append(rows, *r)
			continue
		}
		nf, err := notFound(ctx, c, key)
		if err != nil {
			return nil, err
		}
		missing = append(missing, nf)
	}
	if missing != nil {
		return nil, refuse(errors.Join(missing...))
	}
	return rows, nil
}

package sqlstore

import (
	"cmp"
	"context"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// Get implements [store.Objects].
func (m Methods) Get(ctx context.Context, key v1.Key) (store.Record, error) {
	var r plan.Row
	err := m.b.Read(ctx, func(tx Tx) error {
		there, err := find(tx, fields(&r), "SELECT "+Columns+" FROM toolctl_objects WHERE kind = $1 AND namespace = $2 AND name = $3", key.Kind, key.Namespace, key.Name)
		if err != nil || there {
			return err
		}
		missing, err := plan.NotFound(m.reader(tx), key)
		if err != nil {
			return err
		}
		return plan.Refuse(missing)
	})
	if err != nil {
		return store.Record{}, err
	}
	rec, err := r.Decode()
	return rec, m.b.Explain(ctx, err)
}

// Apply implements [store.Objects].
func (m Methods) Apply(ctx context.Context, objects []v1.Object, opts store.ApplyOptions) ([]store.Change, error) {
	wanted, err := plan.Want(objects, opts)
	if err != nil {
		return nil, err
	}
	var p *plan.Plan
	prepare := func(tx Tx) (err error) {
		p, err = wanted.Plan(m.reader(tx), time.Now().UnixMicro())
		return err
	}
	if opts.DryRun {
		err = m.b.Read(ctx, prepare)
	} else {
		err = m.change(ctx, func(tx Tx) (*plan.Plan, []v1.AuditRecord, error) {
			if err := prepare(tx); err != nil {
				return nil, nil, err
			}
			return p, p.Lines(opts.By, cmp.Or(opts.Command, "apply"), string(store.Pruned)), nil
		})
	}
	if err != nil {
		return nil, err
	}
	return p.Changes, nil
}

// Delete implements [store.Objects].
func (m Methods) Delete(ctx context.Context, keys []v1.Key, opts store.DeleteOptions) ([]store.Record, error) {
	var p *plan.Plan
	err := m.change(ctx, func(tx Tx) (_ *plan.Plan, lines []v1.AuditRecord, err error) {
		if p, err = plan.Delete(m.reader(tx), keys, time.Now().UnixMicro()); err != nil {
			return nil, nil, err
		}
		return p, p.Lines(opts.By, cmp.Or(opts.Command, "delete"), "deleted"), nil
	})
	if err != nil {
		return nil, err
	}
	return p.Removed, nil
}

// change makes a plan and executes it, while no other process can change objects.
func (m Methods) change(ctx context.Context, prepare func(tx Tx) (*plan.Plan, []v1.AuditRecord, error)) error {
	var p *plan.Plan
	err := m.b.Write(ctx, func(tx Tx) error {
		if err := tx.Lock("objects"); err != nil {
			return err
		}
		var lines []v1.AuditRecord
		var err error
		if p, lines, err = prepare(tx); err != nil {
			return err
		}
		if err := m.carryOut(tx, p); err != nil {
			return err
		}
		return tx.AddAudit(lines...)
	})
	if err == nil && len(p.Log) > 0 {
		m.b.Notify()
	}
	return err
}

// changesAfter returns the next changes, and whether there are more.
func (m Methods) changesAfter(ctx context.Context, from int64) (events []store.Event, more bool, err error) {
	const batch = 256
	var log []plan.Event
	err = m.b.Read(ctx, func(tx Tx) error {
		log, more = nil, false
		at, err := m.reader(tx).Revision()
		if err != nil || at == from {
			return err
		}
		if from > at {
			return watch.TooOld(from, at)
		}
		log, err = all(tx, func(row Rows) (e plan.Event, err error) {
			err = row.Scan(append([]any{&e.Type}, fields(&e.Row)...)...)
			return e, err
		}, "SELECT type, "+Columns+" FROM toolctl_changes WHERE resource_version > $1 ORDER BY resource_version LIMIT $2", from, batch)
		if err != nil {
			return err
		}
		if len(log) == 0 || log[0].Row.Version != from+1 {
			return watch.TooOld(from, at)
		}
		more = log[len(log)-1].Row.Version < at
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	events, err = plan.Events(log)
	return events, more && err == nil, m.b.Explain(ctx, err)
}

// reader implements [plan.Reader] within a transaction.
type reader struct {
	Tx
	d *Dialect
}

var _ plan.Reader = reader{}

func (m *Methods) reader(tx Tx) reader { return reader{tx, &m.d} }

// Revision implements [store.Objects].
func (m Methods) Revision(ctx context.Context) (at int64, err error) {
	err = m.b.Read(ctx, func(tx Tx) error {
		at, err = m.reader(tx).Revision()
		return err
	})
	return at, err
}

func (r reader) Revision() (at int64, err error) {
	err = One(r, []any{&at}, r.d.Revision)
	return at, err
}

func (r reader) Members(set string) ([]plan.Row, error) {
	return objects(r, "SELECT "+Columns+" FROM toolctl_objects WHERE set_name = $1", set)
}

func (r reader) Names(kind string) ([]v1.Key, error) {
	return all(r, func(row Rows) (key v1.Key, err error) {
		key.Kind = kind
		err = row.Scan(&key.Namespace, &key.Name)
		return key, err
	}, "SELECT namespace, name FROM toolctl_objects WHERE kind = $1 ORDER BY namespace, name", kind)
}

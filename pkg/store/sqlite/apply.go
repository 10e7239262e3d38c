package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// Apply makes the store hold the objects, all of them or, when it returns an
// error, none. The changes are in the order of the objects; then come those that
// were pruned, in the order of [Store.List]. The objects must not change meanwhile.
func (s *Store) Apply(ctx context.Context, objects []v1.Object, opts store.ApplyOptions) ([]store.Change, error) {
	if opts.Prune && opts.Set == "" {
		return nil, errors.New("apply: prune needs the name of a set: without one it cannot be told what an earlier apply has left")
	}
	wanted, err := encodeAll(objects)
	if err != nil {
		return nil, err
	}
	var p *plan
	prepare := func(c *sql.Conn) (err error) {
		p, err = makePlan(ctx, c, objects, wanted, opts)
		return err
	}
	if opts.DryRun {
		err = s.read(ctx, prepare)
	} else {
		err = s.write(ctx, true, func(c *sql.Conn) error {
			if err := prepare(c); err != nil {
				return err
			}
			if err := p.carryOut(ctx, c, s.keep); err != nil {
				return err
			}
			return p.audit(ctx, c, opts.By, cmp.Or(opts.Command, "apply"), string(store.Pruned))
		})
	}
	if err != nil {
		return nil, err
	}
	if !opts.DryRun && len(p.log) > 0 {
		s.notifier.notify()
	}
	return p.changes, nil
}

func encodeAll(objects []v1.Object) ([]row, error) {
	var errs []error
	wanted := make([]row, len(objects))
	seen := make(map[v1.Key]v1.Source, len(objects))
	for i, o := range objects {
		if o == nil {
			errs = append(errs, fmt.Errorf("apply: object %d is nil", i))
			continue
		}
		h := o.Head()
		key := h.Key()
		switch first, twice := seen[key]; {
		case v1.NewObject(key.Kind) == nil:
			errs = append(errs, fmt.Errorf("apply: object %d has the unknown kind %q", i, key.Kind))
			continue
		case key.Name == "":
			errs = append(errs, fmt.Errorf("apply: object %d, a %s, has no name", i, key.Kind))
			continue
		case twice:
			errs = append(errs, fmt.Errorf("apply: %s is given twice%s", key, places(first, h.Source)))
			continue
		}
		seen[key] = h.Source
		var err error
		if wanted[i], err = encode(o); err != nil {
			errs = append(errs, fmt.Errorf("apply: %w", err))
		}
	}
	return wanted, errors.Join(errs...)
}

func places(a, b v1.Source) string {
	if a.IsZero() || b.IsZero() {
		return ""
	}
	return fmt.Sprintf(": at %s and at %s", a, b)
}

// plan is what an apply will do. Making it changes nothing.
type plan struct {
	changes []store.Change
	upserts []row   // rows to write
	gone    []row   // rows to remove
	log     []event // one for each new resourceVersion
	version int64   // the last resourceVersion given out
}

func makePlan(ctx context.Context, c *sql.Conn, objects []v1.Object, wanted []row, opts store.ApplyOptions) (*plan, error) {
	p := &plan{changes: make([]store.Change, 0, len(objects))}
	var err error
	if p.version, err = revision(ctx, c); err != nil {
		return nil, err
	}
	get, err := c.PrepareContext(ctx, "SELECT "+columns+" FROM objects WHERE kind = ? AND namespace = ? AND name = ?")
	if err != nil {
		return nil, err
	}
	defer get.Close()
	if err := checkExpected(ctx, get, opts.Expect); err != nil {
		return nil, err
	}
	now := time.Now().UnixMicro()
	var taken []error
	for i := range wanted {
		// The plan works on a copy: a transaction may be tried twice.
		next := wanted[i]
		next.set = opts.Set
		old, err := getRow(ctx, get, next.key)
		if err != nil {
			return nil, err
		}
		if old != nil && old.set != "" && old.set != opts.Set {
			switch {
			case opts.Set == "" || opts.Others == store.LeaveOthers:
				next.set = old.set
			case opts.Others == store.RefuseOthers:
				taken = append(taken, &store.SetError{Key: next.key, Set: opts.Set, Owner: old.set})
			}
		}
		if err := p.put(old, next, objects[i], now); err != nil {
			return nil, err
		}
		if old != nil && old.set != "" && next.set != old.set {
			p.changes[len(p.changes)-1].TakenFrom = old.set
		}
	}
	if taken != nil {
		return nil, refuse(errors.Join(taken...))
	}
	if opts.Prune {
		return p, p.prune(ctx, c, wanted, opts, now)
	}
	return p, nil
}

// getRow returns nil when there is no such object.
func getRow(ctx context.Context, get *sql.Stmt, key v1.Key) (*row, error) {
	var r row
	err := get.QueryRowContext(ctx, key.Kind, key.Namespace, key.Name).Scan(r.fields()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &r, err
}

func checkExpected(ctx context.Context, get *sql.Stmt, expect map[v1.Key]int64) error {
	var conflicts []error
	for key, want := range expect {
		old, err := getRow(ctx, get, key)
		if err != nil {
			return err
		}
		var found int64
		if old != nil {
			found = old.version
		}
		if found != want {
			conflicts = append(conflicts, &store.ConflictError{Key: key, Want: want, Found: found})
		}
	}
	if len(conflicts) == 0 {
		return nil
	}
	slices.SortFunc(conflicts, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return refuse(errors.Join(conflicts...))
}

// put plans one object: next, where old is (nil for nowhere).
func (p *plan) put(old *row, next row, o v1.Object, now int64) error {
	ch := store.Change{Key: next.key, Action: store.Created}
	next.uid, next.generation, next.created, next.updated = "", 1, now, now
	if old != nil {
		same, sameSpec, err := compare(old, &next)
		if err != nil {
			return err
		}
		next.uid, next.generation, next.created, next.updated, next.version = old.uid, old.generation, old.created, old.updated, old.version
		ch.Action = store.Unchanged
		if !same {
			ch.Action, next.updated = store.Configured, now
		}
		if !sameSpec {
			next.generation++
		}
		before := old.record(o)
		if !old.sameBytes(&next) {
			if before, err = old.decode(); err != nil {
				return err
			}
		}
		ch.Before = &before
	} else {
		next.uid = uuid.NewString()
	}
	switch {
	case ch.Action != store.Unchanged:
		typ := store.Added
		if ch.Action == store.Configured {
			typ = store.Modified
		}
		p.version++
		next.version = p.version
		ev := event{typ: typ, row: next}
		if old != nil {
			ev.before = old.version
		}
		p.log = append(p.log, ev)
		p.upserts = append(p.upserts, next)
	case next.set != old.set || !next.sameBytes(old):
		p.upserts = append(p.upserts, next)
	}
	after := next.record(o)
	ch.After = &after
	p.changes = append(p.changes, ch)
	return nil
}

func (p *plan) prune(ctx context.Context, c *sql.Conn, wanted []row, opts store.ApplyOptions, now int64) error {
	keep := make(map[v1.Key]bool, len(wanted))
	for i := range wanted {
		keep[wanted[i].key] = true
	}
	var members []row
	if err := queryRows(ctx, c, &members, "SELECT "+columns+" FROM objects WHERE set_name = ?", opts.Set); err != nil {
		return err
	}
	members = slices.DeleteFunc(members, func(r row) bool { return keep[r.key] })
	if opts.Keep != nil {
		all, err := decodeAll(members)
		if err != nil {
			return err
		}
		kept := map[v1.Key]bool{}
		for i := range all {
			kept[members[i].key] = opts.Keep(all[i])
		}
		members = slices.DeleteFunc(members, func(r row) bool { return kept[r.key] })
	}
	slices.SortFunc(members, func(a, b row) int { return compareKeys(a.key, b.key) })
	removed, err := p.remove(members, now)
	for i := range removed {
		p.changes = append(p.changes, store.Change{Key: members[i].key, Action: store.Pruned, Before: &removed[i]})
	}
	return err
}

// remove plans the removal of rows and returns what they hold.
func (p *plan) remove(rows []row, now int64) ([]store.Record, error) {
	records, err := decodeAll(rows)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		p.gone = append(p.gone, r)
		p.version++
		before := r.version
		r.version, r.updated = p.version, now
		p.log = append(p.log, event{store.Deleted, r, before})
	}
	return records, nil
}

// compareKeys orders keys as [Store.List] does.
func compareKeys(a, b v1.Key) int {
	kinds := v1.Kinds()
	return cmp.Or(
		cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

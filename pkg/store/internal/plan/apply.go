package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/parallel"
	"toolctl.dev/toolctl/pkg/store"
)

// Wanted are the objects of an apply, prepared for planning.
type Wanted struct {
	objects []v1.Object
	rows    []Row
	opts    store.ApplyOptions
}

// Want checks the objects and the options of an apply.
func Want(objects []v1.Object, opts store.ApplyOptions) (*Wanted, error) {
	if opts.Prune && opts.Set == "" {
		return nil, errors.New("apply: prune needs the name of a set, to find the objects of earlier applies")
	}
	w := &Wanted{objects: objects, rows: make([]Row, len(objects)), opts: opts}
	errs := make([]error, len(objects))
	seen := make(map[v1.Key]v1.Source, len(objects))
	for i, o := range objects {
		errs[i] = wantable(i, o, seen)
	}
	parallel.Each(len(objects), func(i int) {
		if errs[i] == nil {
			w.rows[i], errs[i] = encode(objects[i])
		}
	})
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("apply: %w", err)
		}
	}
	return w, errors.Join(errs...)
}

// wantable returns why an object cannot be applied together with the preceding objects.
func wantable(i int, o v1.Object, seen map[v1.Key]v1.Source) error {
	if o == nil {
		return fmt.Errorf("object %d is nil", i)
	}
	h := o.Head()
	key := h.Key()
	switch first, twice := seen[key]; {
	case v1.NewObject(key.Kind) == nil:
		return fmt.Errorf("object %d has the unknown kind %q", i, key.Kind)
	case key.Name == "":
		return fmt.Errorf("object %d, a %s, has no name", i, key.Kind)
	case twice:
		return fmt.Errorf("%s is given twice%s", key, places(first, h.Source))
	}
	seen[key] = h.Source
	return nil
}

// Plan plans the apply at a time in microseconds since 1970. It may be called again if a transaction is retried.
func (w *Wanted) Plan(r Reader, now int64) (*Plan, error) {
	opts := w.opts
	p := &Plan{Changes: make([]store.Change, 0, len(w.objects)), at: now, commit: opts.Commit}
	var err error
	if p.Version, err = r.Revision(); err != nil {
		return nil, err
	}
	found, err := r.Rows(w.keys())
	if err != nil {
		return nil, err
	}
	there := byKey(found)
	if err := checkExpected(there, opts.Expect); err != nil {
		return nil, err
	}
	before, err := w.before(there)
	if err != nil {
		return nil, err
	}
	var taken []error
	for i := range w.rows {
		next, old := w.rows[i], there[w.rows[i].Key]
		next.Set = opts.Set
		if old != nil && old.Set != "" && old.Set != opts.Set {
			switch {
			case opts.Set == "" || opts.Others == store.LeaveOthers:
				next.Set = old.Set
			case opts.Others == store.RefuseOthers:
				taken = append(taken, &store.SetError{Key: next.Key, Set: opts.Set, Owner: old.Set})
			}
		}
		if err := p.put(old, before[i], next, w.objects[i], now); err != nil {
			return nil, err
		}
		if old != nil && old.Set != "" && next.Set != old.Set {
			p.Changes[len(p.Changes)-1].TakenFrom = old.Set
		}
	}
	if taken != nil {
		return nil, Refuse(errors.Join(taken...))
	}
	if opts.Prune {
		if err := w.prune(p, r, now); err != nil {
			return nil, err
		}
	}
	if opts.Set == "" || opts.DryRun || opts.NoRevision {
		return p, nil
	}
	return p, w.revise(p, r, now)
}

// keys returns the keys of the objects, and of those with an expected version.
func (w *Wanted) keys() []v1.Key {
	keys := make([]v1.Key, len(w.rows), len(w.rows)+len(w.opts.Expect))
	seen := make(map[v1.Key]bool, len(w.rows))
	for i := range w.rows {
		keys[i] = w.rows[i].Key
		seen[keys[i]] = true
	}
	for key := range maps.Keys(w.opts.Expect) {
		if !seen[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

func checkExpected(there map[v1.Key]*Row, expect map[v1.Key]int64) error {
	var conflicts []error
	for key, want := range expect {
		var found int64
		if old := there[key]; old != nil {
			found = old.Version
		}
		if found != want {
			conflicts = append(conflicts, &store.ConflictError{Key: key, Want: want, Found: found})
		}
	}
	if len(conflicts) == 0 {
		return nil
	}
	slices.SortFunc(conflicts, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return Refuse(errors.Join(conflicts...))
}

// before decodes the stored records of the objects; missing objects are nil.
func (w *Wanted) before(there map[v1.Key]*Row) ([]*store.Record, error) {
	records, errs := make([]*store.Record, len(w.rows)), make([]error, len(w.rows))
	parallel.Each(len(w.rows), func(i int) {
		old := there[w.rows[i].Key]
		if old == nil {
			return
		}
		record := old.record(w.objects[i])
		if !old.sameBytes(&w.rows[i]) {
			record, errs[i] = old.Decode()
		}
		records[i] = &record
	})
	return records, errors.Join(errs...)
}

// put plans the change of one object from old, which is nil if it does not exist and was decoded as before, to next.
func (p *Plan) put(old *Row, before *store.Record, next Row, o v1.Object, now int64) error {
	ch := store.Change{Key: next.Key, Action: store.Created}
	next.UID, next.Generation, next.Created, next.Updated = "", 1, now, now
	if old != nil {
		same, sameSpec, err := compare(old, &next)
		if err != nil {
			return err
		}
		next.UID, next.Generation, next.Created, next.Updated, next.Version = old.UID, old.Generation, old.Created, old.Updated, old.Version
		ch.Action = store.Unchanged
		if !same {
			ch.Action, next.Updated = store.Configured, now
		}
		if !sameSpec {
			next.Generation++
		}
		ch.Before = before
	} else {
		next.UID = uuid.NewString()
	}
	switch {
	case ch.Action != store.Unchanged:
		typ := store.Added
		if ch.Action == store.Configured {
			typ = store.Modified
		}
		p.Version++
		next.Version = p.Version
		ev := Event{Type: typ, Row: next}
		if old != nil {
			ev.Before = old.Version
		}
		p.Log = append(p.Log, ev)
		p.Upserts = append(p.Upserts, next)
	case next.Set != old.Set || !next.sameBytes(old):
		p.Upserts = append(p.Upserts, next)
	}
	after := next.record(o)
	ch.After = &after
	p.Changes = append(p.Changes, ch)
	return nil
}

// prune plans the removal of the objects in the set that are not applied.
func (w *Wanted) prune(p *Plan, r Reader, now int64) error {
	keep := make(map[v1.Key]bool, len(w.rows))
	for i := range w.rows {
		keep[w.rows[i].Key] = true
	}
	members, err := r.Members(w.opts.Set)
	if err != nil {
		return err
	}
	members = slices.DeleteFunc(members, func(r Row) bool { return keep[r.Key] })
	if w.opts.Keep != nil {
		all, err := DecodeAll(members)
		if err != nil {
			return err
		}
		kept := map[v1.Key]bool{}
		for i := range all {
			kept[members[i].Key] = w.opts.Keep(all[i])
		}
		members = slices.DeleteFunc(members, func(r Row) bool { return kept[r.Key] })
	}
	slices.SortFunc(members, func(a, b Row) int { return Compare(a.Key, b.Key) })
	removed, err := p.remove(members, now)
	for i := range removed {
		p.Changes = append(p.Changes, store.Change{Key: members[i].Key, Action: store.Pruned, Before: &removed[i]})
	}
	return err
}

// Compare orders keys as lists do: in the order of the kinds, then by namespace and name.
func Compare(a, b v1.Key) int {
	kinds := v1.Kinds()
	return cmp.Or(
		cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

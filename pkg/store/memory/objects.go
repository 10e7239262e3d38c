package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// Apply implements [store.Objects].
func (s *Store) Apply(ctx context.Context, objects []v1.Object, opts store.ApplyOptions) ([]store.Change, error) {
	wanted, err := plan.Want(objects, opts)
	if err != nil {
		return nil, err
	}
	var p *plan.Plan
	prepare := func() (err error) {
		p, err = wanted.Plan(reader{s}, s.now().UnixMicro())
		return err
	}
	if opts.DryRun {
		err = s.read(ctx, prepare)
	} else {
		err = s.write(ctx, func() error {
			if err := prepare(); err != nil {
				return err
			}
			return s.carryOut(ctx, p, p.Lines(opts.By, cmp.Or(opts.Command, "apply"), string(store.Pruned)))
		})
	}
	if err != nil {
		return nil, err
	}
	if !opts.DryRun && len(p.Log) > 0 {
		s.changed.Notify()
	}
	return p.Changes, nil
}

// Delete implements [store.Objects].
func (s *Store) Delete(ctx context.Context, keys []v1.Key, opts store.DeleteOptions) ([]store.Record, error) {
	var p *plan.Plan
	err := s.write(ctx, func() (err error) {
		if p, err = plan.Delete(reader{s}, keys, s.now().UnixMicro()); err != nil {
			return err
		}
		return s.carryOut(ctx, p, p.Lines(opts.By, cmp.Or(opts.Command, "delete"), "deleted"))
	})
	if err != nil {
		return nil, err
	}
	if len(p.Log) > 0 {
		s.changed.Notify()
	}
	return p.Removed, nil
}

// carryOut does what the plan says, or nothing.
func (s *Store) carryOut(ctx context.Context, p *plan.Plan, records []v1.AuditRecord) error {
	lines, err := chain.NewLines(records...)
	if err != nil {
		return err
	}
	more := sizeOf(lines)
	for i := range p.Upserts {
		more += size(&p.Upserts[i])
	}
	if p.Revision != nil {
		more += int64(len(p.Revision.Record))
		for i := range p.Revision.Starts {
			more += size(&p.Revision.Starts[i].Row)
		}
	}
	if err := s.room(more); err != nil {
		return err
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	for _, r := range p.Upserts {
		s.rows[r.Key] = r
	}
	for _, k := range p.Gone {
		delete(s.rows, k)
	}
	s.log = append(s.log, p.Kept(s.keep)...)
	s.log = slices.Clone(s.log[max(int64(len(s.log))-s.keep, 0):])
	s.version = p.Version
	if rev := p.Revision; rev != nil {
		if s.history[rev.Set] == nil {
			s.history[rev.Set] = &history{}
		}
		s.history[rev.Set].add(rev)
	}
	s.trail.add(lines)
	s.audited.Notify()
	return nil
}

func size(r *plan.Row) int64 { return int64(len(r.Manifest) + len(r.Origin)) }

// room refuses what would make the store larger than it may be.
func (s *Store) room(more int64) error {
	if s.max == 0 {
		return nil
	}
	total := s.trail.bytes + more
	for _, r := range s.rows {
		total += size(&r)
	}
	for _, h := range s.history {
		total += h.bytes()
	}
	for _, r := range s.runs {
		total += int64(len(r.State))
	}
	if total > s.max {
		return fmt.Errorf("store in memory: %w of %d bytes, nothing was changed", store.ErrLimit, s.max)
	}
	return nil
}

// reader reads for a plan, while the store is locked.
type reader struct{ s *Store }

func (r reader) Revision() (int64, error) { return r.s.version, nil }

func (r reader) Rows(keys []v1.Key) (rows []plan.Row, err error) {
	for _, key := range keys {
		if row, ok := r.s.rows[key]; ok {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (r reader) Members(set string) ([]plan.Row, error) {
	return r.s.sorted(func(row *plan.Row) bool { return row.Set == set }), nil
}

func (r reader) Names(kind string) (keys []v1.Key, err error) {
	for _, row := range r.s.sorted(func(row *plan.Row) bool { return row.Key.Kind == kind }) {
		keys = append(keys, row.Key)
	}
	return keys, nil
}

// sorted returns rows in the order of lists.
func (s *Store) sorted(keep func(*plan.Row) bool) []plan.Row {
	var rows []plan.Row
	for _, row := range s.rows {
		if keep(&row) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b plan.Row) int { return plan.Compare(a.Key, b.Key) })
	return rows
}

// Get implements [store.Objects].
func (s *Store) Get(ctx context.Context, key v1.Key) (rec store.Record, err error) {
	err = s.read(ctx, func() error {
		row, ok := s.rows[key]
		if !ok {
			nf, err := plan.NotFound(reader{s}, key)
			if err != nil {
				return err
			}
			return nf
		}
		rec, err = row.Decode()
		return err
	})
	return rec, err
}

// List implements [store.Objects].
func (s *Store) List(ctx context.Context, opts store.ListOptions) (list store.List, err error) {
	if err := opts.Check(); err != nil {
		return list, err
	}
	var rows []plan.Row
	err = s.read(ctx, func() error {
		list.ResourceVersion = s.version
		rows = s.sorted(func(r *plan.Row) bool {
			return (opts.Kind == "" || r.Key.Kind == opts.Kind) && (opts.Namespace == "" || r.Key.Namespace == opts.Namespace) && (opts.Set == "" || r.Set == opts.Set) &&
				(opts.Name == "" || r.Key.Name == opts.Name) && (opts.Remote == "" || r.Remote == opts.Remote)
		})
		return nil
	})
	if err != nil {
		return store.List{}, err
	}
	list.Total = len(rows)
	rows = rows[min(opts.Offset, len(rows)):]
	if opts.Limit > 0 {
		rows = rows[:min(opts.Limit, len(rows))]
	}
	list.Records, err = plan.Listed(rows, opts)
	return list, err
}

// Revision implements [store.Objects].
func (s *Store) Revision(ctx context.Context) (at int64, err error) {
	err = s.read(ctx, func() error {
		at = s.version
		return nil
	})
	return at, err
}

// Watch implements [store.Objects].
func (s *Store) Watch(ctx context.Context, from int64) iter.Seq2[store.Event, error] {
	return watch.Changes(ctx, &s.changed, from, func(ctx context.Context, from int64) ([]store.Event, bool, error) {
		var log []plan.Event
		err := s.read(ctx, func() error {
			oldest := s.version - int64(len(s.log))
			if from < oldest || from > s.version {
				return watch.TooOld(from, s.version)
			}
			log = slices.Clone(s.log[from-oldest:])
			return nil
		})
		if err != nil {
			return nil, false, err
		}
		events, err := plan.Events(log)
		return events, false, err
	})
}

package memory

import (
	"context"
	"maps"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/plan"
)

// history is the revisions of a set, the oldest first, and what they held.
type history struct {
	records [][]byte
	members []plan.Member
}

func (h *history) bytes() (n int64) {
	for _, r := range h.records {
		n += int64(len(r))
	}
	for i := range h.members {
		n += size(&h.members[i].Row)
	}
	return n
}

// add writes a revision.
func (h *history) add(rev *plan.Revision) {
	ends := make(map[v1.Key]bool, len(rev.Ends))
	for _, key := range rev.Ends {
		ends[key] = true
	}
	for i := range h.members {
		if m := &h.members[i]; m.Last == 0 && ends[m.Key] {
			m.Last = rev.Number - 1
		}
	}
	h.members = slices.DeleteFunc(append(h.members, rev.Starts...), func(m plan.Member) bool { return m.Last != 0 && m.Last < rev.Oldest })
	h.records = append(h.records, rev.Record)
	if keep := rev.Number - rev.Oldest + 1; int64(len(h.records)) > keep {
		h.records = slices.Clone(h.records[int64(len(h.records))-keep:])
	}
}

// Versions implements [plan.Reader].
func (r reader) Versions(set string) (map[v1.Key]int64, error) {
	versions := map[v1.Key]int64{}
	for key, row := range r.s.rows {
		if row.Set == set {
			versions[key] = row.Version
		}
	}
	return versions, nil
}

// Latest implements [plan.Reader].
func (r reader) Latest(set string) (latest store.Revision, members []plan.Member, err error) {
	h := r.s.history[set]
	if h == nil {
		return latest, nil, nil
	}
	for _, m := range h.members {
		if m.Last == 0 {
			members = append(members, m)
		}
	}
	latest, err = plan.DecodeRevision(h.records[len(h.records)-1])
	return latest, members, err
}

// Revisions implements [store.Revisions].
func (s *Store) Revisions(ctx context.Context, q store.RevisionQuery) (all []store.Revision, err error) {
	err = s.read(ctx, func() (err error) {
		all, err = s.revisions(q)
		return err
	})
	return all, err
}

func (s *Store) revisions(q store.RevisionQuery) (all []store.Revision, err error) {
	for _, set := range slices.Sorted(maps.Keys(s.history)) {
		if q.Set != "" && q.Set != set {
			continue
		}
		records := s.history[set].records
		if q.Newest {
			records = records[len(records)-1:]
		}
		for _, record := range records {
			rev, err := plan.DecodeRevision(record)
			if err != nil {
				return nil, err
			}
			if q.Number == 0 || q.Number == rev.Number {
				all = append(all, rev)
			}
		}
	}
	return all, nil
}

// RevisionObjects implements [store.Revisions].
func (s *Store) RevisionObjects(ctx context.Context, set string, number int64) (records []store.Record, err error) {
	var rows []plan.Row
	err = s.read(ctx, func() error {
		kept, err := s.revisions(store.RevisionQuery{Set: set})
		if err != nil {
			return err
		}
		if set == "" || !slices.ContainsFunc(kept, func(r store.Revision) bool { return r.Number == number }) {
			return store.NoRevision(set, number, kept)
		}
		for _, m := range s.history[set].members {
			if m.First <= number && (m.Last == 0 || m.Last >= number) {
				rows = append(rows, m.Row)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b plan.Row) int { return plan.Compare(a.Key, b.Key) })
	return plan.DecodeAll(rows)
}

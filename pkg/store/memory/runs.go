package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"toolctl.dev/toolctl/pkg/store"
)

// PutRun implements [store.Runs].
func (s *Store) PutRun(ctx context.Context, r store.Run) error {
	if err := r.Check(); err != nil {
		return err
	}
	return s.write(ctx, func() error {
		old, there := s.runs[r.ID]
		if !there && len(s.runs) >= store.MaxRuns {
			return store.ErrRunsFull
		}
		if err := s.room(int64(len(r.State) - len(old.State))); err != nil {
			return err
		}
		r.Updated, r.State = s.now().UTC(), slices.Clone(r.State)
		s.runs[r.ID] = r
		return nil
	})
}

// GetRun implements [store.Runs].
func (s *Store) GetRun(ctx context.Context, id string) (r store.Run, err error) {
	err = s.read(ctx, func() error {
		var there bool
		if r, there = s.runs[id]; !there {
			return store.NoRun(id)
		}
		r.State = slices.Clone(r.State)
		return nil
	})
	return r, err
}

// ListRuns implements [store.Runs].
func (s *Store) ListRuns(ctx context.Context) (all []store.Run, err error) {
	err = s.read(ctx, func() error {
		all = slices.SortedFunc(maps.Values(s.runs), func(a, b store.Run) int {
			return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.ID, b.ID))
		})
		for i := range all {
			all[i].State = nil
		}
		return nil
	})
	return all, err
}

// DeleteRun implements [store.Runs].
func (s *Store) DeleteRun(ctx context.Context, id string) error {
	return s.write(ctx, func() error {
		if _, there := s.runs[id]; !there {
			return store.NoRun(id)
		}
		delete(s.runs, id)
		return nil
	})
}

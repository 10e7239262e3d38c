package memory

import (
	"cmp"
	"context"
	"iter"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/internal/chain"
	"toolctl.dev/toolctl/pkg/store/internal/watch"
)

// SetOverride implements [store.Overrides].
func (s *Store) SetOverride(ctx context.Context, o store.Override) (store.Override, error) {
	o, err := o.Complete(s.now())
	if err != nil {
		return o, err
	}
	err = s.write(ctx, func() error {
		o.Version = int64(len(s.overrides)) + 1
		var before int64
		for _, old := range s.overrides {
			if old.Namespace == o.Namespace && old.Tool == o.Tool {
				before = old.Version
			}
		}
		if err := s.append(chain.Override(&o, before)); err != nil {
			return err
		}
		s.overrides = append(s.overrides, o)
		return nil
	})
	if err == nil {
		s.changed.Notify()
	}
	return o, err
}

// Overrides implements [store.Overrides].
func (s *Store) Overrides(ctx context.Context) (now []store.Override, err error) {
	err = s.read(ctx, func() error {
		newest := map[v1.Key]store.Override{}
		for _, o := range s.overrides {
			newest[v1.Key{Namespace: o.Namespace, Name: o.Tool}] = o
		}
		for _, o := range newest {
			if o.Description != "" {
				now = append(now, o)
			}
		}
		return nil
	})
	slices.SortFunc(now, func(a, b store.Override) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Tool, b.Tool))
	})
	return now, err
}

// OverrideHistory implements [store.Overrides].
func (s *Store) OverrideHistory(ctx context.Context, namespace, tool string) (all []store.Override, err error) {
	err = s.read(ctx, func() error {
		for _, o := range slices.Backward(s.overrides) {
			if o.Tool == tool && (namespace == "" || o.Namespace == namespace) {
				all = append(all, o)
			}
		}
		return nil
	})
	return all, err
}

// WatchOverrides implements [store.Overrides].
func (s *Store) WatchOverrides(ctx context.Context) iter.Seq2[[]store.Override, error] {
	version := func(ctx context.Context) (at int64, err error) {
		err = s.read(ctx, func() error {
			at = int64(len(s.overrides))
			return nil
		})
		return at, err
	}
	return watch.Latest(ctx, &s.changed, version, s.Overrides)
}

package memory

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// HoldLeases implements [store.Leases].
func (s *Store) HoldLeases(ctx context.Context, holder string, leases []store.Lease, lasts time.Duration) (all []store.Lease, now time.Time, err error) {
	err = s.write(ctx, func() error {
		now = s.now()
		maps.DeleteFunc(s.leases, func(_ string, l store.Lease) bool { return !l.Expires.After(now) })
		for _, l := range leases {
			old, taken := s.leases[l.Name]
			if taken && old.Holder != holder || !taken && len(s.leases) >= store.MaxLeases {
				continue
			}
			s.leases[l.Name] = store.Lease{Name: l.Name, Holder: holder, Value: l.Value, Expires: now.Add(lasts)}
		}
		all = slices.SortedFunc(maps.Values(s.leases), func(a, b store.Lease) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return all, now, err
}

// ReturnLeases implements [store.Leases].
func (s *Store) ReturnLeases(ctx context.Context, holder string, names ...string) error {
	return s.write(ctx, func() error {
		maps.DeleteFunc(s.leases, func(name string, l store.Lease) bool {
			return l.Holder == holder && (len(names) == 0 || slices.Contains(names, name))
		})
		return nil
	})
}

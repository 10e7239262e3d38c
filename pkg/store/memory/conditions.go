package memory

import (
	"context"
	"slices"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// Turned implements [store.Conditions].
func (s *Store) Turned(ctx context.Context, seen []store.Seen) (since []time.Time, err error) {
	err = s.write(ctx, func() error {
		var turned []store.Turn
		since, turned = store.TurnsOf(s.turns, seen, s.now())
		if len(turned) == 0 {
			return nil
		}
		there := make(map[string]bool, len(s.rows))
		for _, row := range s.rows {
			there[row.UID] = true
		}
		s.turns = slices.DeleteFunc(s.turns, func(old store.Turn) bool {
			return !there[old.UID] || slices.ContainsFunc(turned, func(t store.Turn) bool { return t.UID == old.UID && t.Type == old.Type })
		})
		s.turns = append(s.turns, turned...)
		return nil
	})
	return since, err
}

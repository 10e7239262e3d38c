package policy

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
	v1 "toolctl.dev/toolctl/api/v1"
)

// TestAgreesWithAMap compares the counters with a plain map.
func TestAgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, model, ctx := NewMemoryCounters(nil), map[string]int64{}, context.Background()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			var counters []v1.Counter
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 4, rapid.ID).Draw(t, "keys") {
				counters = append(counters, v1.Counter{Key: key, Limit: rapid.Int64Range(-1, 3).Draw(t, "limit")})
			}
			before, full := make([]v1.Count, len(counters)), -1
			for i, c := range counters {
				before[i].Used = model[c.Key]
				if full < 0 && c.Limit >= 0 && before[i].Used >= c.Limit {
					full = i
				}
			}
			var used []v1.Count
			var err error
			gotFull := full
			switch rapid.IntRange(0, 2).Draw(t, "method") {
			case 0:
				used, gotFull, err = m.Reserve(ctx, counters)
				for _, c := range counters {
					if full < 0 {
						model[c.Key]++
					}
				}
			case 1:
				used, err = m.Read(ctx, counters)
			case 2:
				used = before
				err = m.Release(ctx, counters)
				for _, c := range counters {
					model[c.Key] = max(model[c.Key]-1, 0)
				}
			}
			if err != nil || gotFull != full || !slices.Equal(used, before) {
				t.Fatalf("%v: used %v, full %d, %v; want %v, %d", counters, used, gotFull, err, before, full)
			}
		}
	})
}

// TestReservesAllOrNothing checks that callers with overlapping sets of counters in any order neither deadlock nor see
// half of a reservation.
func TestReservesAllOrNothing(t *testing.T) {
	const callers, rounds = 8, 300
	m := NewMemoryCounters(nil)
	left, right := v1.Counter{Key: "left", Limit: 3}, v1.Counter{Key: "right", Limit: 3}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			counters := []v1.Counter{left, right}
			if i%2 == 1 {
				slices.Reverse(counters)
			}
			for range rounds {
				if used, _ := m.Read(t.Context(), counters); used[0] != used[1] || used[0].Used > 3 {
					t.Errorf("counts that always move together read as %v", used)
				}
				if _, full, _ := m.Reserve(t.Context(), counters); full < 0 {
					m.Release(t.Context(), counters)
				}
			}
		})
	}
	wg.Wait()
	if used, _ := m.Read(t.Context(), []v1.Counter{left, right}); used[0].Used != 0 || used[1].Used != 0 {
		t.Errorf("%v is left after all was given back", used)
	}
}

func (m *MemoryCounters) size() (size int) {
	for i := range m.shards {
		size += len(m.shards[i].young) + len(m.shards[i].old)
	}
	return size
}

func TestIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemoryCounters(nil)
		reserve := func(c v1.Counter) (used int64, full int) {
			u, full, err := m.Reserve(t.Context(), []v1.Counter{c})
			if err != nil {
				t.Fatal(err)
			}
			return u[0].Used, full
		}
		day := v1.Counter{Key: "day", Limit: 1, Window: 24 * time.Hour}
		busy := v1.Counter{Key: "busy", Limit: 1, Idle: 1000 * time.Hour}
		idle := v1.Counter{Key: "idle", Limit: 1, Idle: 1000 * time.Hour}
		reserve(day)
		reserve(busy)
		reserve(idle)
		const bound = 2*shardCount*shardHalf + shardCount
		fill := func(round string) {
			for i := range bound * 3 / 2 {
				reserve(v1.Counter{Key: fmt.Sprintf("session %s %d", round, i), Limit: 1, Idle: 1000 * time.Hour})
				if i%1000 == 0 {
					if _, full := reserve(busy); full != 0 {
						t.Fatalf("a count that is asked for was forgotten after %d others", i)
					}
				}
			}
			if got := m.size(); got > bound+shardCount*4 {
				t.Fatalf("%d counts are kept, want at most %d", got, bound)
			}
		}
		fill("first")
		if _, full := reserve(day); full != 0 {
			t.Error("the count of a span that is not over was forgotten")
		}
		if used, _ := reserve(idle); used != 0 {
			t.Error("the count of a session that nobody asked for was kept")
		}
		time.Sleep(25 * time.Hour) // time of the synctest bubble
		fill("second")
		if used, full := reserve(day); used != 0 || full != -1 {
			t.Error("the count of a span that is over was kept")
		}
		if err := m.Release(t.Context(), []v1.Counter{{Key: "never seen"}}); err != nil {
			t.Error(err)
		}
	})
}

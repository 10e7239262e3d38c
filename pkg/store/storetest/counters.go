package storetest

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

func testReserve(t *testing.T, backend Backend) {
	st := backend.open(t)
	a, b, zero, free := v1.Counter{Key: "a", Limit: 2}, v1.Counter{Key: "b", Limit: 5}, v1.Counter{Key: "z"}, v1.Counter{Key: "f", Limit: -1}
	for _, step := range []struct {
		name     string
		counters []v1.Counter
		used     []int64
		full     int
	}{
		{"none", nil, nil, -1},
		{"first", []v1.Counter{a, b, free}, []int64{0, 0, 0}, -1},
		{"second", []v1.Counter{b, a}, []int64{1, 1}, -1},
		{"full, and the others unchanged", []v1.Counter{b, a, free}, []int64{2, 2, 1}, 1},
		{"limit 0 allows none", []v1.Counter{free, zero}, []int64{1, 0}, 1},
		{"the first that is full is named", []v1.Counter{free, zero, a}, []int64{1, 0, 2}, 1},
		{"others go on", []v1.Counter{b, free}, []int64{2, 1}, -1},
	} {
		counts, full, err := st.Reserve(t.Context(), step.counters)
		used := usedOf(counts)
		if err != nil || full != step.full || !slices.Equal(used, step.used) {
			t.Errorf("%s: used %d, full %d, %v: want used %d, full %d", step.name, used, full, err, step.used, step.full)
		}
	}
	all := []v1.Counter{a, b, zero, free, {Key: "never"}}
	read(t, st, all, []int64{2, 3, 0, 2, 0})
	for range 3 {
		if err := st.Release(t.Context(), []v1.Counter{a, {Key: "never"}}); err != nil {
			t.Fatal(err)
		}
	}
	read(t, st, all, []int64{0, 3, 0, 2, 0})
	if _, full, err := st.Reserve(t.Context(), []v1.Counter{a}); full != -1 || err != nil {
		t.Errorf("after a release: full %d, %v", full, err)
	}
}

func usedOf(counts []v1.Count) (used []int64) {
	for _, c := range counts {
		used = append(used, c.Used)
	}
	return used
}

func read(t *testing.T, st store.Store, counters []v1.Counter, want []int64) {
	t.Helper()
	if counts, err := st.Read(t.Context(), counters); err != nil || !slices.Equal(usedOf(counts), want) {
		t.Errorf("read %v, %v: want %d", counts, err, want)
	}
}

func testReserveIsExact(t *testing.T, backend Backend) {
	const limit, goroutines, each = 100, 64, 5
	disk := backend.New(t)
	stores := []store.Store{open(t, disk), open(t, disk)}
	counters := []v1.Counter{{Key: "a", Limit: limit}, {Key: "b", Limit: -1}}
	var granted, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for range each {
				_, full, err := stores[i%2].Reserve(t.Context(), counters)
				switch {
				case err != nil:
					t.Error(err)
				case full == -1:
					granted.Add(1)
				default:
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if granted.Load() != limit || refused.Load() != goroutines*each-limit {
		t.Errorf("%d granted, %d refused: want %d and %d", granted.Load(), refused.Load(), limit, goroutines*each-limit)
	}
	read(t, stores[0], counters, []int64{limit, limit})
}

// testReserveAllOrNothing: counters that are always reserved together have equal counts at any time, and a full counter
// leaves the others unchanged.
func testReserveAllOrNothing(t *testing.T, backend Backend) {
	const callers, rounds = 8, 20
	disk := backend.New(t)
	stores := []store.Store{open(t, disk), open(t, disk)}
	left, right, free := v1.Counter{Key: "left", Limit: 3}, v1.Counter{Key: "right", Limit: 3}, v1.Counter{Key: "free", Limit: -1}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			st, counters := stores[i%2], []v1.Counter{left, free, right}
			if i%4 > 1 {
				slices.Reverse(counters)
			}
			for range rounds {
				counts, err := st.Read(t.Context(), []v1.Counter{left, right, free})
				if err != nil {
					t.Error(err)
				} else if counts[0] != counts[1] || counts[0] != counts[2] || counts[0].Used > 3 {
					t.Errorf("counts that always move together read as %v", counts)
				}
				_, full, err := st.Reserve(t.Context(), counters)
				if err == nil && full < 0 {
					err = st.Release(t.Context(), counters)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	read(t, stores[0], []v1.Counter{left, right, free}, []int64{0, 0, 0})
}

// testCountersExpire: a count ends by the clock of the store, which may differ from other clocks.
func testCountersExpire(t *testing.T, backend Backend) {
	disk := backend.New(t)
	st, other := open(t, disk), open(t, disk)
	soon, later := v1.Counter{Key: "soon", Limit: 1, Window: time.Second}, v1.Counter{Key: "later", Limit: 1, Window: 24 * time.Hour}
	idle, kept, good := v1.Counter{Key: "idle", Limit: 1, Idle: time.Second}, v1.Counter{Key: "kept", Limit: 1, Idle: time.Hour}, v1.Counter{Key: "good", Limit: 1}
	first, full, err := st.Reserve(t.Context(), []v1.Counter{soon, later, idle, kept, good})
	if err != nil || full >= 0 {
		t.Fatal(full, err)
	}
	for i, c := range []v1.Counter{soon, later} {
		ends := first[i].Ends
		if !ends.Equal(ends.Truncate(c.Window)) || ends.IsZero() {
			t.Errorf("a window of %s ends at %s", c.Window, ends)
		}
	}
	if !first[2].Ends.IsZero() || !first[4].Ends.IsZero() {
		t.Errorf("counts without a window end: %v", first)
	}
	// The clock advances by itself: the next reservation succeeds when the window is over.
	for _, c := range []v1.Counter{soon, idle} {
		for full := 0; full == 0; {
			counts, now, err := other.Reserve(t.Context(), []v1.Counter{c})
			if err != nil {
				t.Fatal(err)
			}
			if full = now; full < 0 && (counts[0].Used != 0 || c.Window > 0 && !counts[0].Ends.After(first[0].Ends)) {
				t.Errorf("%s begins again as %+v, before it ended at %s", c.Key, counts[0], first[0].Ends)
			}
			runtime.Gosched()
		}
	}
	for _, c := range []v1.Counter{kept, good} {
		if _, full, err := other.Reserve(t.Context(), []v1.Counter{c}); full != 0 || err != nil {
			t.Errorf("%s: full %d, %v: want it to be kept", c.Key, full, err)
		}
	}
}

// testReleaseOfAWindow: a count in a window that is over is not subtracted from the next window.
func testReleaseOfAWindow(t *testing.T, backend Backend) {
	st := backend.open(t)
	c := v1.Counter{Key: "w", Limit: 5, Window: 24 * time.Hour}
	counts, _, err := st.Reserve(t.Context(), []v1.Counter{c})
	if err != nil {
		t.Fatal(err)
	}
	before := c
	before.Ends = counts[0].Ends.Add(-c.Window)
	if err := st.Release(t.Context(), []v1.Counter{before}); err != nil {
		t.Fatal(err)
	}
	read(t, st, []v1.Counter{c}, []int64{1})
	c.Ends = counts[0].Ends
	if err := st.Release(t.Context(), []v1.Counter{c}); err != nil {
		t.Fatal(err)
	}
	read(t, st, []v1.Counter{c}, []int64{0})
}

package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// A store counts for policies; this is the interface that they ask for.
var _ interface {
	Reserve(ctx context.Context, counters []v1.Counter) (used []int64, full int, err error)
	Release(ctx context.Context, counters []v1.Counter) error
	Read(ctx context.Context, counters []v1.Counter) (used []int64, err error)
} = (*sqlite.Store)(nil)

func TestReserve(t *testing.T) {
	st := open(t, ":memory:")
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
		{"one key twice counts twice", []v1.Counter{b, b}, []int64{3, 4}, -1},
		{"one key twice stays within its limit", []v1.Counter{{Key: "t", Limit: 1}, {Key: "t", Limit: 1}}, []int64{0, 1}, 1},
	} {
		used, full, err := st.Reserve(t.Context(), step.counters)
		if err != nil || full != step.full || !slices.Equal(used, step.used) {
			t.Errorf("%s: used %d, full %d, %v: want used %d, full %d", step.name, used, full, err, step.used, step.full)
		}
	}
	all := []v1.Counter{a, b, zero, free, {Key: "t"}, {Key: "never"}}
	read(t, st, all, []int64{2, 5, 0, 2, 0, 0})
	for range 3 {
		if err := st.Release(t.Context(), []v1.Counter{a, {Key: "never"}}); err != nil {
			t.Fatal(err)
		}
	}
	read(t, st, all, []int64{0, 5, 0, 2, 0, 0})
	if _, full, err := st.Reserve(t.Context(), []v1.Counter{a}); full != -1 || err != nil {
		t.Errorf("after a release: full %d, %v", full, err)
	}
}

func read(t *testing.T, st *sqlite.Store, counters []v1.Counter, want []int64) {
	t.Helper()
	if used, err := st.Read(t.Context(), counters); err != nil || !slices.Equal(used, want) {
		t.Errorf("read %d, %v: want %d", used, err, want)
	}
}

func TestCountersExpire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	st := create(t, path)
	past, future, far := time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	old, kept, forever := v1.Counter{Key: "old", Limit: 1, Expires: past}, v1.Counter{Key: "kept", Limit: 1, Expires: future}, v1.Counter{Key: "far", Limit: 1, Expires: far}
	for round := range 2 {
		if used, full, err := st.Reserve(t.Context(), []v1.Counter{old}); full != -1 || used[0] != 0 || err != nil {
			t.Errorf("round %d: an expired count is in the way: used %d, full %d, %v", round, used, full, err)
		}
	}
	read(t, st, []v1.Counter{old}, []int64{0})
	for _, c := range []v1.Counter{kept, forever} {
		for round, want := range []int{-1, 0} {
			if _, full, err := st.Reserve(t.Context(), []v1.Counter{c}); full != want || err != nil {
				t.Errorf("%s, round %d: full %d, %v: want %d", c.Key, round, full, err, want)
			}
		}
	}
	var many []v1.Counter
	for i := range 100 {
		many = append(many, v1.Counter{Key: fmt.Sprint(i), Limit: -1, Expires: past})
	}
	if _, _, err := st.Reserve(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	// Another process drops them with its first reservation.
	if _, _, err := open(t, path).Reserve(t.Context(), []v1.Counter{{Key: "new", Limit: -1}}); err != nil {
		t.Fatal(err)
	}
	if n := query(t, path, "SELECT count(*) FROM counters"); n != "3" {
		t.Errorf("%s counters are kept, want 3", n)
	}
}

func TestReserveIsExact(t *testing.T) {
	const limit, goroutines, each = 100, 64, 5
	path := filepath.Join(t.TempDir(), "state.db")
	stores := []*sqlite.Store{create(t, path), create(t, path)}
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

// TestBusy: a writer of another process that does not end is an error in bounded
// time, and one that ends is waited for.
func TestBusy(t *testing.T) {
	path := filled(t, 1)
	other := open(t, path)
	c, err := other.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	st := openWith(t, path, store.Options{BusyTimeout: 10 * time.Millisecond})
	_, err = st.Apply(t.Context(), tools(1, "b"), store.ApplyOptions{})
	if !errors.Is(err, store.ErrBusy) || !contains(err, path, "locked by another process for ", "try again, or end that process") {
		t.Errorf("apply: %v", err)
	}
	if n := mustList(t, st, store.ListOptions{}).Total; n != 1 {
		t.Errorf("a reader sees %d objects while another writes", n)
	}

	patient := open(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := patient.Apply(ctx, tools(1, "b"), store.ApplyOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a waiting apply whose context ends: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := patient.Apply(t.Context(), tools(1, "c"), store.ApplyOptions{})
		done <- err
	}()
	if _, err := c.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("a waiting apply: %v", err)
	}
	wholeSet(t, st, 1, "c")
}

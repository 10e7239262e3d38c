package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/store"
)

// held returns the leases as NAME=HOLDER:VALUE.
func held(all []store.Lease) string {
	var texts []string
	for _, l := range all {
		texts = append(texts, l.Name+"="+l.Holder+":"+l.Value)
	}
	return strings.Join(texts, " ")
}

func testLeases(t *testing.T, backend Backend) {
	disk := backend.New(t)
	st, other := open(t, disk), open(t, disk)
	check := func(st store.Store, holder, want string, lasts time.Duration, names ...string) time.Time {
		t.Helper()
		var leases []store.Lease
		for _, name := range names {
			name, value, _ := strings.Cut(name, ":")
			leases = append(leases, store.Lease{Name: name, Value: value})
		}
		all, now, err := st.HoldLeases(t.Context(), holder, leases, lasts)
		if err != nil {
			t.Fatal(err)
		}
		if got := held(all); got != want {
			t.Errorf("%s took %v: got %q, want %q", holder, names, got, want)
		}
		for _, l := range all {
			if !l.Expires.After(now) {
				t.Errorf("%s expired at %s, it is %s", l.Name, l.Expires, now)
			}
		}
		return now
	}
	check(st, "a", "", time.Minute)
	check(st, "a", "x=a:1 y=a:", time.Minute, "y", "x:1")
	check(other, "b", "x=a:1 y=a: z=b:2", time.Minute, "z:2", "x:3")
	check(st, "a", "x=a:4 y=a: z=b:2", time.Minute, "x:4")
	if err := other.ReturnLeases(t.Context(), "b", "x", "z"); err != nil {
		t.Fatal(err)
	}
	check(st, "a", "x=a:4 y=a:", time.Minute)
	if err := st.ReturnLeases(t.Context(), "a", "y"); err != nil {
		t.Fatal(err)
	}
	check(other, "b", "x=a:4 y=b:5", time.Minute, "y:5")
	// A lease that is not renewed expires, and another holder can acquire it.
	if _, _, err := st.HoldLeases(t.Context(), "a", []store.Lease{{Name: "x", Value: "6"}}, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for got := ""; got != "x=b:7 y=b:5"; {
		all, _, err := other.HoldLeases(t.Context(), "b", []store.Lease{{Name: "x", Value: "7"}}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if got = held(all); !strings.HasSuffix(got, "y=b:5") {
			t.Fatalf("got %q", got)
		}
	}
	if err := st.ReturnLeases(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	check(st, "a", "", time.Minute)
}

// testLeaseIsOfOne: if many want a lease at once, exactly one gets it.
func testLeaseIsOfOne(t *testing.T, backend Backend) {
	disk := backend.New(t)
	const holders, names = 8, 20
	var all sync.WaitGroup
	stores := []store.Store{open(t, disk), open(t, disk)}
	for i := range holders {
		all.Go(func() {
			var want []store.Lease
			for n := range names {
				want = append(want, store.Lease{Name: fmt.Sprint("lease-", n)})
			}
			if i%2 == 0 {
				slices.Reverse(want)
			}
			if _, _, err := stores[i%2].HoldLeases(t.Context(), fmt.Sprint("holder-", i), want, time.Hour); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	first, _, err := stores[0].HoldLeases(t.Context(), "", nil, time.Hour)
	second, _, err2 := stores[1].HoldLeases(t.Context(), "", nil, time.Hour)
	if err != nil || err2 != nil || len(first) != names || held(first) != held(second) {
		t.Errorf("got %q and %q, %v, %v", held(first), held(second), err, err2)
	}
}

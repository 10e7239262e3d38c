package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

func testRuns(t *testing.T, backend Backend) {
	disk := backend.New(t)
	st, other := open(t, disk), open(t, disk)
	put := func(st store.Store, id, prompt, state string) {
		t.Helper()
		if err := st.PutRun(t.Context(), store.Run{ID: id, Prompt: prompt, State: []byte(state)}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(st store.Store, want ...string) {
		t.Helper()
		all, err := st.ListRuns(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, listed := range all {
			r, err := st.GetRun(t.Context(), listed.ID)
			if err != nil {
				t.Fatal(err)
			}
			if listed.State != nil || !r.Updated.Equal(listed.Updated) || r.Updated.IsZero() {
				t.Errorf("listed as %+v, kept as %+v", listed, r)
			}
			got = append(got, r.ID+" "+r.Prompt+" "+string(r.State))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	missing := func(err error) {
		t.Helper()
		if nf := (*v1.NotFoundError)(nil); !errors.As(err, &nf) || nf.Kind != "Run" || nf.Name != "A1" {
			t.Errorf("got %v, want that there is no run A1", err)
		}
	}
	check(st)
	_, err := st.GetRun(t.Context(), "A1")
	missing(err)
	missing(st.DeleteRun(t.Context(), "A1"))
	put(st, "A1", "default/trip", "\x00\xff one")
	put(other, "b2", "", "")
	check(st, "A1 default/trip \x00\xff one", "b2  ")
	put(other, "A1", "default/trip", "two") // now the most recently stored run
	check(st, "b2  ", "A1 default/trip two")
	if err := other.DeleteRun(t.Context(), "A1"); err != nil {
		t.Fatal(err)
	}
	_, err = st.GetRun(t.Context(), "A1")
	missing(err)
	check(st, "b2  ")
}

// testRunsAtTheSameTime: if 64 goroutines store and delete runs concurrently, each reads its own runs intact, and the
// limit is kept.
func testRunsAtTheSameTime(t *testing.T, backend Backend) {
	disk := backend.New(t)
	stores := []store.Store{open(t, disk), open(t, disk)}
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			st, id := stores[i%2], fmt.Sprint("Run", i)
			for n := range 3 {
				want := bytes.Repeat([]byte{byte(i), byte(n)}, 2000)
				if err := st.PutRun(t.Context(), store.Run{ID: id, State: want}); err != nil {
					t.Error(err)
				}
				if r, err := stores[(i+1)%2].GetRun(t.Context(), id); err != nil || !bytes.Equal(r.State, want) {
					t.Errorf("run %s is not what was put: %d bytes, %v", id, len(r.State), err)
				}
			}
			if i%4 > 0 {
				if err := st.DeleteRun(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left, err := stores[0].ListRuns(t.Context()); err != nil || len(left) != 16 {
		t.Errorf("%d runs are left, want 16: %v", len(left), err)
	}
}

func testRunBounds(t *testing.T, backend Backend) {
	st := openWith(t, backend.New(t), store.Options{MaxBytes: 1 << 20})
	for _, id := range []string{"", "../state", "a b", strings.Repeat("x", 65)} {
		if err := st.PutRun(t.Context(), store.Run{ID: id}); err == nil || !strings.Contains(err.Error(), "expected an id of up to 64 letters and digits") {
			t.Errorf("id %q: %v", id, err)
		}
	}
	if err := st.PutRun(t.Context(), store.Run{ID: "large", State: make([]byte, store.MaxRunBytes+1)}); err == nil {
		t.Error("a run that is too large was kept")
	}
	if err := st.PutRun(t.Context(), store.Run{ID: "large", State: make([]byte, 2<<20)}); !errors.Is(err, store.ErrLimit) {
		t.Errorf("got %v, want %v", err, store.ErrLimit)
	}
	for i := range store.MaxRuns {
		if err := st.PutRun(t.Context(), store.Run{ID: fmt.Sprint("Run", i), State: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.PutRun(t.Context(), store.Run{ID: "more"}); !errors.Is(err, store.ErrRunsFull) {
		t.Errorf("got %v, want %v", err, store.ErrRunsFull)
	}
	if err := st.PutRun(t.Context(), store.Run{ID: "Run7", State: []byte("again")}); err != nil {
		t.Errorf("in the place of an earlier one: %v", err)
	}
	if all, err := st.ListRuns(t.Context()); err != nil || len(all) != store.MaxRuns || all[len(all)-1].ID != "Run7" {
		t.Errorf("%d runs are kept, %v", len(all), err)
	}
}

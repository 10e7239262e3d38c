package action_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// TestRunsAreOfOne checks that no other process can take a run while the process that took it lives, and that any
// process can soon after that process has died.
func TestRunsAreOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		t.Cleanup(func() { st.Close() })
		one, other := action.NewRuns(st), action.NewRuns(st)
		check := func(err error, want string) {
			t.Helper()
			if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
				t.Errorf("got error %v, want %q", err, want)
			}
		}
		take := func(runs *action.Runs, want string) {
			t.Helper()
			run, err := runs.Take(t.Context(), "ABCDEF")
			if err != nil || string(run.State) != want {
				t.Errorf("took %q, %v, want %q", run.State, err, want)
			}
		}
		check(one.Save(t.Context(), store.Run{ID: "ABCDEF", State: []byte("1")}), "")
		take(one, "1")
		time.Sleep(time.Hour) // the time of a person or a slow model
		_, err := other.Take(t.Context(), "ABCDEF")
		check(err, "run ABCDEF is being resumed already")
		_, err = one.Take(t.Context(), "ABCDEF")
		check(err, "run ABCDEF is being resumed already")
		check(one.Save(t.Context(), store.Run{ID: "ABCDEF", State: []byte("2")}), "")
		take(other, "2")
		check(other.Close(), "")
		take(one, "2")

		// The process dies: nobody renews its lease.
		if _, _, err := st.HoldLeases(t.Context(), "dead", nil, time.Second); err != nil {
			t.Fatal(err)
		}
		check(one.Close(), "")
		if _, _, err := st.HoldLeases(t.Context(), "dead", []store.Lease{{Name: "run/ABCDEF"}}, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		_, err = other.Take(t.Context(), "ABCDEF")
		check(err, "try again in 30s")
		time.Sleep(31 * time.Second)
		take(other, "2")

		// A lost lease is an error, and the state of the new holder is not overwritten.
		if err := st.ReturnLeases(t.Context(), leaseHolder(t, st)); err != nil {
			t.Fatal(err)
		}
		take(one, "2")
		check(other.Save(t.Context(), store.Run{ID: "ABCDEF", State: []byte("lost")}), "another process has resumed it")
		check(other.Drop(t.Context(), "ABCDEF"), "another process has resumed it")
		check(one.Drop(t.Context(), "ABCDEF"), "")
		_, err = one.Take(t.Context(), "ABCDEF")
		if nf := (*v1.NotFoundError)(nil); !errors.As(err, &nf) {
			t.Errorf("got %v", err)
		}
		check(one.Save(t.Context(), store.Run{ID: "ABCDEG", State: []byte("1")}), "")
		_, err = one.Take(t.Context(), "ABCDEF")
		check(err, `did you mean "ABCDEG"`)
		check(errors.Join(one.Close(), other.Close()), "")
		if all, _, err := st.HoldLeases(t.Context(), "", nil, 0); err != nil || len(all) > 0 {
			t.Errorf("leases are left: %v, %v", all, err)
		}
	})
}

func leaseHolder(t *testing.T, st *memory.Store) string {
	t.Helper()
	all, _, err := st.HoldLeases(t.Context(), "", nil, 0)
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v, want one lease", all, err)
	}
	return all[0].Holder
}

func TestRunsFull(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	runs := action.NewRuns(st)
	for i := range store.MaxRuns {
		if err := runs.Save(t.Context(), store.Run{ID: "R" + strings.Repeat("x", i%50) + string(rune('A'+i/50))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := runs.Save(t.Context(), store.Run{ID: "more"}); !errors.Is(err, store.ErrRunsFull) || !strings.Contains(err.Error(), "toolctl runs delete") {
		t.Errorf("got %v", err)
	}
}

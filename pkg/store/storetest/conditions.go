package storetest

import (
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// testConditions: a condition keeps the time of its last change, however often and by whichever process it is read.
func testConditions(t *testing.T, backend Backend) {
	disk := backend.New(t)
	st := open(t, disk)
	apply := func(mark string) *store.Record {
		t.Helper()
		changes, err := st.Apply(t.Context(), []v1.Object{Tool("a", mark)}, store.ApplyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return changes[0].After
	}
	a := apply("1")
	turned := func(st store.Store, seen store.Seen) time.Time {
		t.Helper()
		if seen.UID == "" {
			seen.UID = a.UID
		}
		since, err := st.Turned(t.Context(), []store.Seen{seen})
		if err != nil || len(since) != 1 || since[0].IsZero() {
			t.Fatalf("%+v: %v, %v", seen, since, err)
		}
		return since[0]
	}
	ready := store.Seen{Type: "Ready", Status: "True", First: true, Since: a.Created}
	broken := store.Seen{Type: "Ready", Status: "False"}
	same := func(what string, got, want time.Time) {
		t.Helper()
		if !got.Equal(want) {
			t.Errorf("%s: since %s, want %s", what, got, want)
		}
	}
	same("as it began", turned(st, ready), a.Created)
	down := turned(st, broken)
	if down.Before(a.Created) {
		t.Errorf("turned at %s, before it was made at %s", down, a.Created)
	}
	again := open(t, disk)
	apply("2")
	same("seen again, after a change of the object", turned(again, broken), down)
	same("another condition", turned(again, store.Seen{Type: "Drifted", Status: "False", First: true, Since: a.Created}), a.Created)
	up := turned(again, ready)
	if up.Before(down) {
		t.Errorf("turned back at %s, before %s", up, down)
	}
	same("turned back, seen again", turned(st, ready), up)
	known := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	same("when it turned is known", turned(st, store.Seen{Type: "Ready", Status: "Unknown", Since: known}), known)

	// A later object with the same name starts again.
	if _, err := st.Delete(t.Context(), []v1.Key{a.Key()}, store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	old := a.UID
	a = apply("3")
	ready.Since = a.Created
	same("made again", turned(st, ready), a.Created)
	turned(st, broken) // the history of the first object is forgotten
	same("nothing is left of the first", turned(st, store.Seen{UID: old, Type: "Ready", Status: "True", First: true, Since: a.Created}), a.Created)
}

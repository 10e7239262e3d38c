package rollout_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

func key(name string) v1.Key {
	return v1.Key{Kind: v1.KindTool, Namespace: v1.DefaultNamespace, Name: name}
}

func apply(t *testing.T, st store.Store, set string, objects ...v1.Object) {
	t.Helper()
	if _, err := st.Apply(t.Context(), objects, store.ApplyOptions{Set: set, Prune: set != ""}); err != nil {
		t.Fatal(err)
	}
}

// marks returns the objects of a set, each with the mark of its manifest.
func marks(t *testing.T, st store.Store, set string) []string {
	t.Helper()
	list, err := st.List(t.Context(), store.ListOptions{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range list.Records {
		out = append(out, r.Key().Name+"="+r.Object.Head().Metadata.Labels["mark"])
	}
	return out
}

func undo(t *testing.T, st store.Store, to int64, o rollout.Options) error {
	t.Helper()
	u, err := rollout.NewUndo(t.Context(), st, "s", to, o)
	if err != nil {
		return err
	}
	_, err = u.Apply(t.Context(), st)
	return err
}

func TestUndo(t *testing.T) {
	st := memory.New(memory.Options{})
	defer st.Close()
	a, b := storetest.Tool("a", "1"), storetest.Tool("b", "1")
	kept := storetest.Tool("kept", "1")
	kept.Metadata.Annotations = map[string]string{"toolctl.dev/prune": "disabled"}
	apply(t, st, "s", a, b)
	apply(t, st, "s", storetest.Tool("a", "2"), storetest.Tool("c", "2"), kept)
	apply(t, st, "s", storetest.Tool("a", "2"), storetest.Tool("c", "2"), kept) // the same manifests, so an undo skips this revision

	if err := undo(t, st, 0, rollout.Options{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if got, want := marks(t, st, "s"), []string{"a=1", "b=1", "kept=1"}; !slices.Equal(got, want) {
		t.Errorf("after the undo %q, want %q", got, want)
	}
	newest, err := st.Revisions(t.Context(), store.RevisionQuery{Set: "s", Newest: true})
	if err != nil || newest[0].Number != 4 || newest[0].UndoOf != 1 || newest[0].By != "ann" || newest[0].Command != "rollout undo" {
		t.Errorf("%+v, %v", newest, err)
	}
	if err := undo(t, st, 2, rollout.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := marks(t, st, "s"), []string{"a=2", "c=2", "kept=1"}; !slices.Equal(got, want) {
		t.Errorf("after the second undo %q, want %q", got, want)
	}
	u, err := rollout.NewUndo(t.Context(), st, "s", 3, rollout.Options{})
	if err != nil || u.Needed() {
		t.Errorf("to the same manifests: %+v, %v", u, err)
	}
}

func TestUndoIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, st store.Store)
		to     int64
		want   string
		force  rollout.Options
	}{
		{"an edit", func(t *testing.T, st store.Store) { apply(t, st, "", storetest.Tool("a", "edited")) }, 1,
			"set \"s\" is not as revision 2 applied it, and nothing was undone:\n  Tool default/a: it was changed since, at resourceVersion 4", rollout.Options{Force: true}},
		{"a delete", func(t *testing.T, st store.Store) {
			if _, err := st.Delete(t.Context(), []v1.Key{key("b")}, store.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, 1, "set \"s\" is not as revision 2 applied it, and nothing was undone:\n  Tool default/b: it was removed since", rollout.Options{Force: true}},
		{"another set", func(t *testing.T, st store.Store) {
			if _, err := st.Apply(t.Context(), []v1.Object{storetest.Tool("b", "1")}, store.ApplyOptions{Set: "other", Others: store.TakeOthers}); err != nil {
				t.Fatal(err)
			}
		}, 1, `Tool default/b belongs to set "other", but this apply is for set "s"`, rollout.Options{TakeOver: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st := memory.New(memory.Options{})
			defer st.Close()
			apply(t, st, "s", storetest.Tool("a", "1"), storetest.Tool("b", "1"))
			apply(t, st, "s", storetest.Tool("a", "2"), storetest.Tool("b", "1"))
			tc.change(t, st)
			before := fmt.Sprint(marks(t, st, ""))
			if err := undo(t, st, tc.to, rollout.Options{}); err == nil || err.Error() != tc.want {
				t.Errorf("%v, want %s", err, tc.want)
			}
			if after := fmt.Sprint(marks(t, st, "")); after != before {
				t.Errorf("it changed %s to %s", before, after)
			}
			if err := undo(t, st, tc.to, tc.force); err != nil {
				t.Fatal(err)
			}
			if got, want := marks(t, st, "s"), []string{"a=1", "b=1"}; !slices.Equal(got, want) {
				t.Errorf("when it is forced %q, want %q", got, want)
			}
		})
	}
}

// TestUndoMeanwhile checks that a change between the plan of an undo and the undo is a conflict.
func TestUndoMeanwhile(t *testing.T) {
	st := memory.New(memory.Options{})
	defer st.Close()
	apply(t, st, "s", storetest.Tool("a", "1"))
	apply(t, st, "s", storetest.Tool("a", "2"))
	u, err := rollout.NewUndo(t.Context(), st, "s", 0, rollout.Options{})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, st, "s", storetest.Tool("a", "3"))
	var moved *store.ConflictError
	if _, err := u.Apply(t.Context(), st); !errors.As(err, &moved) || moved.Key != key("a") {
		t.Errorf("got %v", err)
	}
	if got := marks(t, st, "s"); !slices.Equal(got, []string{"a=3"}) {
		t.Errorf("left is %q", got)
	}
}

func TestUndoOfNothing(t *testing.T) {
	st := memory.New(memory.Options{})
	defer st.Close()
	var missing *v1.NotFoundError
	if err := undo(t, st, 0, rollout.Options{}); !errors.As(err, &missing) || missing.Kind != "Set" {
		t.Errorf("no such set: %v", err)
	}
	apply(t, st, "s", storetest.Tool("a", "1"))
	var none *rollout.NoEarlierError
	if err := undo(t, st, 0, rollout.Options{}); !errors.As(err, &none) || none.Revision != 1 {
		t.Errorf("no earlier revision: %v", err)
	}
	if err := undo(t, st, 7, rollout.Options{}); !errors.As(err, &missing) || missing.Kind != "Revision" {
		t.Errorf("no such revision: %v", err)
	}
}

func TestInspect(t *testing.T) {
	st := memory.New(memory.Options{})
	defer st.Close()
	apply(t, st, "s", storetest.Tool("a", "1"), storetest.Tool("b", "1"), storetest.Tool("c", "1"))
	state := func() *rollout.State {
		t.Helper()
		newest, err := st.Revisions(t.Context(), store.RevisionQuery{Set: "s", Newest: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := rollout.Inspect(t.Context(), st, newest[0])
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := state(); len(s.Members) != 3 || s.Changed != nil || s.Gone != nil {
		t.Errorf("right after the apply: %+v", s)
	}
	apply(t, st, "", storetest.Tool("a", "2"))
	apply(t, st, "other", storetest.Tool("z", "1"))
	if _, err := st.Delete(t.Context(), []v1.Key{key("c")}, store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := state(); len(s.Members) != 2 || !slices.Equal(s.Changed, []v1.Key{key("a")}) || !slices.Equal(s.Gone, []v1.Key{key("c")}) {
		t.Errorf("after an edit and a delete: %+v", s)
	}
	apply(t, st, "s", storetest.Tool("a", "2"), storetest.Tool("b", "1"))
	if s := state(); len(s.Members) != 2 || s.Changed != nil || s.Gone != nil {
		t.Errorf("after the next apply: %+v", s)
	}
}

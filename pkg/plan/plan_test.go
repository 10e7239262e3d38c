package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

func apply(t *testing.T, st store.Store, opts store.ApplyOptions, objects ...v1.Object) []store.Change {
	t.Helper()
	changes, err := st.Apply(t.Context(), objects, opts)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// planned returns a plan of the objects for the set "s", with prune.
func planned(t *testing.T, st store.Store, objects ...v1.Object) *plan.Plan {
	t.Helper()
	changes := apply(t, st, store.ApplyOptions{Set: "s", Prune: true, DryRun: true}, objects...)
	report, err := plan.Compare(t.Context(), st, objects, changes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(report, changes)
	if err != nil {
		t.Fatal(err)
	}
	p.Set, p.Named, p.Prune = "s", true, true
	return p
}

// marks returns the objects of a store, each with the mark of its manifest.
func marks(t *testing.T, st store.Store) []string {
	t.Helper()
	list, err := st.List(t.Context(), store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range list.Records {
		out = append(out, r.Key().Name+"="+r.Object.Head().Metadata.Labels["mark"])
	}
	return out
}

// filled returns a store with the objects a, b and same in the set "s", and with c in another set.
func filled(t *testing.T) store.Store {
	t.Helper()
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	t.Cleanup(func() { st.Close() })
	apply(t, st, store.ApplyOptions{Set: "s"}, storetest.Tool("a", "1"), storetest.Tool("b", "1"), storetest.Tool("same", "1"))
	apply(t, st, store.ApplyOptions{Set: "other"}, storetest.Tool("c", "1"))
	return st
}

// wanted returns the objects of the plan: a changes, b is deleted, and new is created.
func wanted() []v1.Object {
	return []v1.Object{storetest.Tool("a", "2"), storetest.Tool("same", "1"), storetest.Tool("new", "1")}
}

func TestApplyDoesWhatThePlanSays(t *testing.T) {
	st := filled(t)
	p := planned(t, st, wanted()...)
	var steps []string
	for _, s := range p.Steps {
		steps = append(steps, fmt.Sprintf("%s %s", s.Name, s.Action))
	}
	if want := []string{"a configured", "new created", "b pruned"}; !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	if s := p.Summary; s.Create != 1 || s.Change != 1 || s.Delete != 1 || s.Unchanged != 1 {
		t.Errorf("summary %+v", s)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	read, err := plan.Read(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// Other objects may change meanwhile, also in the same files.
	apply(t, st, store.ApplyOptions{}, storetest.Tool("c", "2"))
	objects := append(wanted(), storetest.Tool("later", "1"))
	if _, err := read.Apply(t.Context(), st, objects, store.ApplyOptions{By: "ann", DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if got := marks(t, st); !slices.Equal(got, []string{"a=1", "b=1", "c=2", "same=1"}) {
		t.Errorf("a dry run left %q", got)
	}
	if _, err := read.Apply(t.Context(), st, objects, store.ApplyOptions{By: "ann", Commit: "c0ffee"}); err != nil {
		t.Fatal(err)
	}
	if got := marks(t, st); !slices.Equal(got, []string{"a=2", "c=2", "new=1", "same=1"}) {
		t.Errorf("left is %q", got)
	}
	newest, err := st.Revisions(t.Context(), store.RevisionQuery{Set: "s", Newest: true})
	if err != nil || newest[0].Number != 2 || newest[0].Commit != "c0ffee" || len(newest[0].Changes) != 3 {
		t.Errorf("the revision: %+v, %v", newest, err)
	}
}

func TestApplyRefusesWhatChanged(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, st store.Store)
		files  []v1.Object
		want   string
	}{
		{"the object in the store", func(t *testing.T, st store.Store) { apply(t, st, store.ApplyOptions{}, storetest.Tool("a", "9")) }, wanted(),
			"Tool default/a: the store has it at resourceVersion 5; the plan was made at 1"},
		{"it is gone", func(t *testing.T, st store.Store) {
			if _, err := st.Delete(t.Context(), []v1.Key{{Kind: v1.KindTool, Namespace: "default", Name: "b"}}, store.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, wanted(), "Tool default/b: the store no longer has it; the plan was made at resourceVersion 2"},
		{"it is there already", func(t *testing.T, st store.Store) { apply(t, st, store.ApplyOptions{}, storetest.Tool("new", "9")) }, wanted(),
			"Tool default/new: the plan creates it, and the store has it at resourceVersion 5"},
		{"its set", func(t *testing.T, st store.Store) {
			apply(t, st, store.ApplyOptions{Set: "z", Others: store.TakeOthers}, storetest.Tool("a", "1"))
		}, wanted(), "Tool default/a: it belongs to a different set than when the plan was made"},
		{"the manifest", nil, []v1.Object{storetest.Tool("a", "3"), storetest.Tool("same", "1"), storetest.Tool("new", "1")},
			"Tool default/a: its manifest at tools/a.yaml:1:1 has changed since"},
		{"no manifest", nil, []v1.Object{storetest.Tool("a", "2"), storetest.Tool("same", "1")}, "Tool default/new: it is no longer in the files"},
		{"a manifest again", nil, append(wanted(), storetest.Tool("b", "1")), "Tool default/b: the plan prunes it, but the files contain it again"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st := filled(t)
			p := planned(t, st, wanted()...)
			if tc.change != nil {
				tc.change(t, st)
			}
			before := marks(t, st)
			var stale *plan.StaleError
			if _, err := p.Apply(t.Context(), st, tc.files, store.ApplyOptions{}); !errors.As(err, &stale) || !slices.Equal(stale.Conflicts, []string{tc.want}) {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
			if after := marks(t, st); !slices.Equal(after, before) {
				t.Errorf("it changed %q to %q", before, after)
			}
		})
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		``:                      "expected a plan",
		`[]`:                    "expected a plan",
		`{"plan":1,"colour":1}`: "unknown field",
		`{"plan":2}`:            "the plan has version 2: expected 1",
		`{"plan":1} {}`:         "unexpected data after the plan",
	} {
		if _, err := plan.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestDigest(t *testing.T) {
	digest := func(edit func(*v1.Tool)) string {
		t.Helper()
		tool := storetest.Tool("a", "1")
		edit(tool)
		d, err := plan.Digest(tool)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	plain := digest(func(*v1.Tool) {})
	for name, edit := range map[string]func(*v1.Tool){
		"its place":         func(x *v1.Tool) { x.Source.Line = 40 },
		"the order of keys": func(x *v1.Tool) { x.Spec.MockResult = []byte(`{"conditions":"sunny", "temperature_c":21.5}`) },
		"empty annotations": func(x *v1.Tool) { x.Metadata.Annotations = map[string]string{} },
		"the namespace":     func(x *v1.Tool) { x.Metadata.Namespace = "default" },
	} {
		if digest(edit) != plain {
			t.Errorf("%s counts", name)
		}
	}
	for name, edit := range map[string]func(*v1.Tool){
		"a label":              func(x *v1.Tool) { x.Metadata.Labels["mark"] = "2" },
		"a digit above 2^53":   func(x *v1.Tool) { x.Spec.MockResult = []byte(`9007199254740993`) },
		"the content of files": func(x *v1.Tool) { x.Files = map[string][]byte{"f": {1}} },
		"another namespace":    func(x *v1.Tool) { x.Metadata.Namespace = "prod" },
	} {
		if digest(edit) == plain {
			t.Errorf("%s does not count", name)
		}
	}
}

func TestLeft(t *testing.T) {
	left, err := plan.Left(t.Context(), filled(t), "s", wanted())
	if want := []v1.Key{{Kind: v1.KindTool, Namespace: "default", Name: "b"}}; err != nil || !slices.Equal(left, want) {
		t.Errorf("%v, %v: want %v", left, err, want)
	}
}

package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

func revisionsOf(t testing.TB, st store.Store, q store.RevisionQuery) []store.Revision {
	t.Helper()
	all, err := st.Revisions(t.Context(), q)
	if err != nil {
		t.Error(err) // also called from other goroutines
	}
	return all
}

// testRevisions: every apply of a set creates a revision with its changes; other operations create no revision.
func testRevisions(t *testing.T, backend Backend) {
	disk := backend.New(t)
	st := open(t, disk)
	mustApply(t, st, []v1.Object{Tool("theirs", "a")}, store.ApplyOptions{Set: "theirs"})
	mustApply(t, st, []v1.Object{Tool("none", "a")}, store.ApplyOptions{})
	a := Tool("a", "a")
	a.Files = map[string][]byte{"f": {0, 255, 1}}
	mustApply(t, st, []v1.Object{a, Tool("b", "a")}, store.ApplyOptions{Set: "ours", By: "ann", Source: "git+https://host/repo", Commit: "c0ffee-dirty"})
	mustApply(t, st, []v1.Object{a, Tool("b", "a")}, store.ApplyOptions{Set: "ours", DryRun: true})
	mustApply(t, st, []v1.Object{Tool("theirs", "a")}, store.ApplyOptions{Set: "empty", Others: store.LeaveOthers})
	if _, err := st.Apply(t.Context(), []v1.Object{Tool("theirs", "b")}, store.ApplyOptions{Set: "ours"}); err == nil {
		t.Fatal("an object of another set was taken")
	}
	mustApply(t, st, []v1.Object{a, Tool("b", "a")}, store.ApplyOptions{Set: "ours", Commit: "beef"})
	mustApply(t, st, []v1.Object{a, Tool("b", "a")}, store.ApplyOptions{Set: "ours", Commit: "beef", ChangesOnly: true})
	mustApply(t, st, []v1.Object{Tool("a", "b")}, store.ApplyOptions{Set: "ours", Commit: "cafe", ChangesOnly: true})
	mustApply(t, st, []v1.Object{Tool("a", "b")}, store.ApplyOptions{Set: "ours", Commit: "cafe", ChangesOnly: true}) // one object is left
	mustApply(t, st, []v1.Object{Tool("a", "b"), Tool("theirs", "a")}, store.ApplyOptions{
		Set: "ours", Prune: true, Others: store.TakeOthers, Command: "rollout undo", UndoOf: 1,
	})
	mustApply(t, st, []v1.Object{Tool("single", "a")}, store.ApplyOptions{Set: "singles", NoRevision: true})
	if _, err := st.Delete(t.Context(), []v1.Key{keyOf(v1.KindTool, "a")}, store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	change := func(action store.Action, name, from string) store.RevisionChange {
		return store.RevisionChange{Action: action, Kind: v1.KindTool, Namespace: v1.DefaultNamespace, Name: name, TakenFrom: from}
	}
	want := []store.Revision{
		{Set: "ours", Number: 1, By: "ann", Command: "apply", Source: "git+https://host/repo", Commit: "c0ffee-dirty", Objects: 2, ResourceVersion: 4,
			Changes: []store.RevisionChange{change(store.Created, "a", ""), change(store.Created, "b", "")}},
		{Set: "ours", Number: 2, Command: "apply", Commit: "beef", Objects: 2, ResourceVersion: 4, Changes: []store.RevisionChange{}},
		{Set: "ours", Number: 3, Command: "apply", Commit: "cafe", Objects: 2, ResourceVersion: 5, Changes: []store.RevisionChange{change(store.Configured, "a", "")},
			Left: []store.LeftObject{{Kind: v1.KindTool, Namespace: v1.DefaultNamespace, Name: "b", Revision: 2, Commit: "beef"}}},
		{Set: "ours", Number: 4, Command: "rollout undo", UndoOf: 1, Objects: 2, ResourceVersion: 6,
			Changes: []store.RevisionChange{change(store.Unchanged, "theirs", "theirs"), change(store.Pruned, "b", "")}},
		{Set: "theirs", Number: 1, Command: "apply", Objects: 1, ResourceVersion: 1, Changes: []store.RevisionChange{change(store.Created, "theirs", "")}},
	}
	st = open(t, disk) // as in another process
	all := revisionsOf(t, st, store.RevisionQuery{})
	if diff := cmp.Diff(want, all, cmpopts.IgnoreFields(store.Revision{}, "Time", "Digest")); diff != "" {
		t.Fatalf("revisions (-want +got):\n%s", diff)
	}
	for i, r := range all {
		if r.Time.IsZero() || !strings.HasPrefix(r.Digest, "sha256:") {
			t.Errorf("revision %d: time %s, digest %q", i, r.Time, r.Digest)
		}
	}
	if all[0].Digest != all[1].Digest || all[1].Digest == all[2].Digest || all[0].Digest == all[3].Digest {
		t.Errorf("digests: the same for the same manifests, and for no others: %+v", all)
	}
	for _, tc := range []struct {
		q    store.RevisionQuery
		want []store.Revision
	}{
		{store.RevisionQuery{Set: "theirs"}, all[4:]},
		{store.RevisionQuery{Set: "ours", Number: 3}, all[2:3]},
		{store.RevisionQuery{Newest: true}, all[3:]},
		{store.RevisionQuery{Set: "ours", Newest: true}, all[3:4]},
		{store.RevisionQuery{Set: "gone"}, nil},
		{store.RevisionQuery{Set: "ours", Number: 9}, nil},
	} {
		if diff := cmp.Diff(tc.want, revisionsOf(t, st, tc.q), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.q, diff)
		}
	}
	records, err := st.RevisionObjects(t.Context(), "ours", 1)
	if err != nil || len(records) != 2 || records[0].Set != "ours" {
		t.Fatalf("objects of revision 1: %+v, %v", records, err)
	}
	if diff := cmp.Diff(v1.Object(a), records[0].Object, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("an object of revision 1 (-applied +read):\n%s", diff)
	}
	for _, number := range []int64{0, 5, -1} {
		var missing *v1.NotFoundError
		if _, err := st.RevisionObjects(t.Context(), "ours", number); !errors.As(err, &missing) || !slices.Equal(missing.Candidates, []string{"4", "3", "2", "1"}) {
			t.Errorf("revision %d: %v", number, err)
		}
	}
}

// testRevisionsHoldWhatWas: after any applies, deletes and moves, each stored revision has the objects of the set right
// after it, and the number of stored revisions matches the options of the apply.
func testRevisionsHoldWhatWas(t *testing.T, backend Backend) {
	st := backend.open(t)
	rnd := rand.New(rand.NewPCG(14, 1))
	type state map[v1.Key]string
	was := map[string]map[int64]state{"x": {}, "y": {}}
	numbers := map[string]int64{}
	for step := range 120 {
		set := []string{"x", "y"}[rnd.IntN(2)]
		var objects []v1.Object
		for _, i := range rnd.Perm(8)[:rnd.IntN(6)] {
			objects = append(objects, Tool(fmt.Sprintf("tool-%d", i), fmt.Sprint(rnd.IntN(3))))
		}
		switch rnd.IntN(5) {
		case 0: // operations that create no revision
			if len(objects) > 0 {
				mustApply(t, st, objects[:1], store.ApplyOptions{})
				if _, err := st.Delete(t.Context(), []v1.Key{objects[0].Head().Key()}, store.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			continue
		case 1:
			mustApply(t, st, objects, store.ApplyOptions{})
			continue
		}
		opts := store.ApplyOptions{Set: set, Prune: rnd.IntN(2) == 0, Others: []store.Others{store.TakeOthers, store.LeaveOthers}[rnd.IntN(2)], History: []int{0, 3, -1}[rnd.IntN(3)]}
		mustApply(t, st, objects, opts)
		now := state{}
		for _, r := range mustList(t, st, store.ListOptions{Set: set}).Records {
			now[r.Key()] = r.Object.Head().Metadata.Labels["mark"]
		}
		if len(now) == 0 && numbers[set] == 0 {
			continue // the set never had objects
		}
		numbers[set]++
		was[set][numbers[set]] = now
		oldest := numbers[set] - map[int]int64{0: store.DefaultHistory, 3: 3, -1: 0}[opts.History]
		for number := range was[set] {
			if number < oldest {
				delete(was[set], number)
			}
		}
		kept := revisionsOf(t, st, store.RevisionQuery{Set: set})
		if len(kept) != len(was[set]) || kept[len(kept)-1].Number != numbers[set] || kept[len(kept)-1].Objects != len(now) {
			t.Fatalf("step %d: %d revisions are kept, want %d up to %d", step, len(kept), len(was[set]), numbers[set])
		}
		for _, r := range kept {
			records, err := st.RevisionObjects(t.Context(), set, r.Number)
			if err != nil {
				t.Fatal(err)
			}
			got := state{}
			for _, rec := range records {
				got[rec.Key()] = rec.Object.Head().Metadata.Labels["mark"]
			}
			if diff := cmp.Diff(was[set][r.Number], got); diff != "" {
				t.Fatalf("step %d: revision %d of %s (-was +read):\n%s", step, r.Number, set, diff)
			}
		}
	}
}

// testRevisionsAtTheSameTime: concurrent applies create distinct revisions, and no revision is lost.
func testRevisionsAtTheSameTime(t *testing.T, backend Backend) {
	const writers, rounds = 4, 5
	disk := backend.New(t)
	var wg sync.WaitGroup
	for w := range writers {
		mine := open(t, disk)
		wg.Go(func() {
			for i := range rounds {
				_, err := mine.Apply(t.Context(), Tools(3, fmt.Sprintf("%d-%d", w, i)), store.ApplyOptions{Set: "s", By: fmt.Sprint(w), History: 100})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	st, by := open(t, disk), map[string]int{}
	all := revisionsOf(t, st, store.RevisionQuery{Set: "s"})
	for i, r := range all {
		by[r.By]++
		if r.Number != int64(i)+1 || r.ResourceVersion != int64(3*(i+1)) {
			t.Errorf("revision %d has number %d and resourceVersion %d", i+1, r.Number, r.ResourceVersion)
		}
	}
	if len(all) != writers*rounds || len(by) != writers {
		t.Errorf("%d revisions by %v, want %d", len(all), by, writers*rounds)
	}
}

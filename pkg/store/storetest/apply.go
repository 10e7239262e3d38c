package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// compacted returns a record without the white space of its output schema, which the store does not keep.
func compacted(t *testing.T, r *store.Record) store.Record {
	t.Helper()
	x := *r.Object.(*v1.Tool)
	var b bytes.Buffer
	if err := json.Compact(&b, x.Spec.OutputSchema); err != nil {
		t.Fatal(err)
	}
	x.Spec.OutputSchema = b.Bytes()
	c := *r
	c.Object = &x
	return c
}

func testApplyActions(t *testing.T, backend Backend) {
	for _, tc := range []struct {
		name       string
		edit       func(*v1.Tool)
		want       store.Action
		generation int64
	}{
		{"the same", func(*v1.Tool) {}, store.Unchanged, 1},
		{"another line", func(x *v1.Tool) { x.Source.Line = 40 }, store.Unchanged, 1},
		{"other places of fields", func(x *v1.Tool) { x.Fields = map[string]v1.Source{"/spec": {Line: 9}} }, store.Unchanged, 1},
		{"a warning", func(x *v1.Tool) { x.Violations = []v1.Violation{{Message: "quote it", Severity: v1.SeverityWarning}} }, store.Unchanged, 1},
		{"the default namespace, written out", func(x *v1.Tool) { x.Metadata.Namespace = "default" }, store.Unchanged, 1},
		{"space in a schema", func(x *v1.Tool) { x.Spec.OutputSchema = []byte(`{ "type":"object", "a": 1}`) }, store.Unchanged, 1},
		{"keys in another order", func(x *v1.Tool) { x.Spec.OutputSchema = []byte(`{"a":1,"type":"object"}`) }, store.Unchanged, 1},
		{"empty labels", func(x *v1.Tool) { x.Metadata.Annotations = map[string]string{} }, store.Unchanged, 1},
		{"a label", func(x *v1.Tool) { x.Metadata.Labels = map[string]string{"mark": "b"} }, store.Configured, 1},
		{"a label more", func(x *v1.Tool) { x.Metadata.Labels = map[string]string{"mark": "a", "x": ""} }, store.Configured, 1},
		{"an annotation", func(x *v1.Tool) { x.Metadata.Annotations = map[string]string{"owner": "me"} }, store.Configured, 1},
		{"the spec", func(x *v1.Tool) { x.Spec.Description = "other" }, store.Configured, 2},
		{"items in another order", func(x *v1.Tool) { x.Spec.Redact = []string{"b", "a"} }, store.Configured, 2},
		{"a digit above 2^53", func(x *v1.Tool) { x.Spec.MockResult = []byte(`9007199254740993`) }, store.Configured, 2},
		{"the content of a file", func(x *v1.Tool) { x.Files = map[string][]byte{"f": {0, 255, 2}} }, store.Configured, 2},
		{"a file more", func(x *v1.Tool) { x.Files = map[string][]byte{"f": {0, 255, 1}, "g": nil} }, store.Configured, 2},
		{"the apiVersion", func(x *v1.Tool) { x.APIVersion = "promptkit.altairalabs.ai/v1" }, store.Configured, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			make := func() *v1.Tool {
				x := Tool("x", "a")
				x.Spec.OutputSchema = []byte(`{"type":"object","a":1}`)
				x.Spec.MockResult = []byte(`9007199254740992`)
				x.Spec.Redact = []string{"a", "b"}
				x.Files = map[string][]byte{"f": {0, 255, 1}}
				return x
			}
			st := backend.open(t)
			created := mustApply(t, st, []v1.Object{make()}, store.ApplyOptions{})[0]
			if created.Action != store.Created || created.Before != nil || created.After.Generation != 1 || created.After.ResourceVersion != 1 {
				t.Fatalf("first apply: %+v", created)
			}
			next := make()
			tc.edit(next)
			got := mustApply(t, st, []v1.Object{next}, store.ApplyOptions{})[0]
			if got.Action != tc.want {
				t.Errorf("%s, want %s", got.Action, tc.want)
			}
			version := int64(1)
			if tc.want == store.Configured {
				version = 2
			}
			if r := got.After; r.Generation != tc.generation || r.ResourceVersion != version || r.UID != created.After.UID || !r.Created.Equal(created.After.Created) {
				t.Errorf("after: %+v, want generation %d, resourceVersion %d, the same uid and time", r, tc.generation, version)
			}
			if diff := cmp.Diff(*created.After, compacted(t, got.Before), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("before is not what was applied first (-want +got):\n%s", diff)
			}
			// Get returns the last applied version, whether it changed or not.
			rec, err := st.Get(t.Context(), next.Key())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(compacted(t, got.After), rec, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("read back (-applied +read):\n%s", diff)
			}
		})
	}
}

func testApplyPruneAndSets(t *testing.T, backend Backend) {
	st := backend.open(t)
	other := Tool("other", "a")
	mustApply(t, st, []v1.Object{other}, store.ApplyOptions{Set: "theirs"})
	mustApply(t, st, []v1.Object{Tool("none", "a")}, store.ApplyOptions{})
	mustApply(t, st, []v1.Object{Tool("a", "a"), Tool("b", "a"), policy("p")}, store.ApplyOptions{Set: "ours"})

	got := actions(mustApply(t, st, []v1.Object{Tool("c", "a"), Tool("b", "b")}, store.ApplyOptions{Set: "ours"}))
	if want := []string{"Tool default/c created", "Tool default/b configured"}; !slices.Equal(got, want) {
		t.Errorf("without prune: %q, want %q", got, want)
	}
	var owned *store.SetError
	_, err := st.Apply(t.Context(), []v1.Object{Tool("c", "b"), other}, store.ApplyOptions{Set: "ours", Prune: true})
	if !errors.As(err, &owned) || owned.Owner != "theirs" || owned.Set != "ours" {
		t.Fatalf("an object of another set: %v", err)
	}
	left := mustApply(t, st, []v1.Object{other}, store.ApplyOptions{Set: "ours", Others: store.LeaveOthers})
	without := mustApply(t, st, []v1.Object{other}, store.ApplyOptions{})
	if left[0].After.Set != "theirs" || without[0].After.Set != "theirs" || left[0].TakenFrom != "" {
		t.Errorf("left where it is: %+v", left)
	}
	changed := mustApply(t, st, []v1.Object{Tool("c", "a"), other}, store.ApplyOptions{Set: "ours", Prune: true, Others: store.TakeOthers, Keep: func(r store.Record) bool { return false }})
	if changed[1].TakenFrom != "theirs" || changed[0].TakenFrom != "" {
		t.Errorf("taken over: %+v", changed)
	}
	got = actions(changed)
	want := []string{"Tool default/c unchanged", "Tool default/other unchanged", "Tool default/a pruned", "Tool default/b pruned", "ToolPolicy default/p pruned"}
	if !slices.Equal(got, want) {
		t.Errorf("with prune: %q, want %q", got, want)
	}
	// "other" has moved, so its old set no longer prunes it.
	changes := mustApply(t, st, nil, store.ApplyOptions{Set: "theirs", Prune: true})
	if len(changes) != 0 {
		t.Errorf("their prune removed %q", actions(changes))
	}
	if got, want := names(mustList(t, st, store.ListOptions{Set: "ours"})), []string{"c", "other"}; !slices.Equal(got, want) {
		t.Errorf("our set is %q, want %q", got, want)
	}
	changes = mustApply(t, st, nil, store.ApplyOptions{Set: "ours", Prune: true})
	if c := changes[0]; c.After != nil || c.Before == nil || c.Before.Set != "ours" || c.Key != keyOf(v1.KindTool, "c") {
		t.Errorf("pruned: %+v", c)
	}
	if got, want := names(mustList(t, st, store.ListOptions{})), []string{"none"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}

func testApplyAgainAfterDelete(t *testing.T, backend Backend) {
	st := backend.open(t)
	first := mustApply(t, st, Tools(1, "a"), store.ApplyOptions{})[0]
	if _, err := st.Delete(t.Context(), []v1.Key{first.Key}, store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	again := mustApply(t, st, Tools(1, "a"), store.ApplyOptions{})[0]
	if again.Action != store.Created || again.After.UID == first.After.UID || again.After.Generation != 1 || again.After.ResourceVersion != 3 {
		t.Errorf("%+v: want a new object at resourceVersion 3", again.After)
	}
}

func testApplyErrors(t *testing.T, backend Backend) {
	st := backend.open(t)
	mustApply(t, st, []v1.Object{Tool("kept", "a")}, store.ApplyOptions{Set: "s"})
	twice := Tool("x", "b")
	twice.Source = v1.Source{File: "b.yaml", Line: 7}
	bad := Tool("bad", "a")
	bad.Spec.InputSchema = []byte(`{"type"`)
	unknown := Tool("u", "a")
	unknown.Kind = "Bird"
	for _, tc := range []struct {
		name    string
		objects []v1.Object
		opts    store.ApplyOptions
		want    []string
	}{
		{"prune without a set", nil, store.ApplyOptions{Prune: true}, []string{"prune needs the name of a set"}},
		{"all errors", []v1.Object{nil, unknown, Tool("", "a"), Tool("x", "a"), twice, bad}, store.ApplyOptions{}, []string{
			"object 0 is nil", `object 1 has the unknown kind "Bird"`, "object 2, a Tool, has no name",
			"Tool default/x is given twice: at tools/x.yaml:1:1 and at b.yaml:7", "Tool default/bad: cannot be stored",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changes, err := st.Apply(t.Context(), append([]v1.Object{Tool("new", "a")}, tc.objects...)[min(1, len(tc.objects)):], tc.opts)
			if err == nil || changes != nil {
				t.Fatalf("changes %v, error %v", changes, err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v: does not say %q", err, w)
				}
			}
		})
	}
	if got := names(mustList(t, st, store.ListOptions{})); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("left are %q", got)
	}
}

func testApplyExpect(t *testing.T, backend Backend) {
	st := backend.open(t)
	mustApply(t, st, []v1.Object{Tool("a", "a"), Tool("b", "a")}, store.ApplyOptions{})
	a, b, c := keyOf(v1.KindTool, "a"), keyOf(v1.KindTool, "b"), keyOf(v1.KindTool, "c")
	mustApply(t, st, []v1.Object{Tool("a", "b"), Tool("c", "b")}, store.ApplyOptions{Expect: map[v1.Key]int64{a: 1, b: 2, c: 0}})

	for _, dry := range []bool{false, true} {
		_, err := st.Apply(t.Context(), []v1.Object{Tool("a", "z"), Tool("d", "z")}, store.ApplyOptions{
			DryRun: dry, Expect: map[v1.Key]int64{a: 1, c: 0, keyOf(v1.KindTool, "d"): 9, b: 2},
		})
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) || *conflict != (store.ConflictError{Key: a, Want: 1, Found: 3}) {
			t.Fatalf("%v: the conflict is %+v", err, conflict)
		}
		want := "Tool default/a: conflict: expected resourceVersion 1, found 3: someone changed it, read it again\n" +
			"Tool default/c: conflict: expected no such object, found resourceVersion 4: read it again\n" +
			"Tool default/d: conflict: expected resourceVersion 9, but the object no longer exists: read it again"
		if err.Error() != want {
			t.Errorf("error\n%v\nwant\n%v", err, want)
		}
	}
	if at, err := st.Revision(t.Context()); at != 4 || err != nil {
		t.Errorf("revision %d, %v: want 4, a conflict changes nothing", at, err)
	}
}

func testDelete(t *testing.T, backend Backend) {
	st := backend.open(t)
	mustApply(t, st, []v1.Object{Tool("get-weather", "a"), Tool("b", "a"), policy("p")}, store.ApplyOptions{})
	weather, b := keyOf(v1.KindTool, "get-weather"), keyOf(v1.KindTool, "b")

	_, err := st.Delete(t.Context(), []v1.Key{b, keyOf(v1.KindTool, "get-wether"), keyOf(v1.KindPrompt, "b"), {Kind: v1.KindTool, Namespace: "tools", Name: "b"}}, store.DeleteOptions{})
	var missing *v1.NotFoundError
	if !errors.As(err, &missing) || missing.Name != "get-wether" || !slices.Equal(missing.Candidates, []string{"get-weather"}) {
		t.Fatalf("%v", err)
	}
	want := "tool \"get-wether\" not found; did you mean \"get-weather\"?\nprompt \"b\" not found\ntool \"tools/b\" not found; did you mean \"b\"?"
	if err.Error() != want {
		t.Errorf("error\n%v\nwant\n%v", err, want)
	}
	if n := mustList(t, st, store.ListOptions{}).Total; n != 3 {
		t.Errorf("a failed delete left %d objects of 3", n)
	}

	removed, err := st.Delete(t.Context(), []v1.Key{keyOf(v1.KindToolPolicy, "p"), weather, weather}, store.DeleteOptions{})
	if err != nil || len(removed) != 2 || removed[0].Key().Name != "p" || removed[1].Key() != weather || removed[1].ResourceVersion != 1 {
		t.Errorf("removed %+v, %v", removed, err)
	}
	if _, err := st.Get(t.Context(), weather); !errors.As(err, &missing) {
		t.Errorf("get after delete: %v", err)
	}
	if at, _ := st.Revision(t.Context()); at != 5 {
		t.Errorf("revision %d, want 5", at)
	}
}

// wholeSet checks that the store holds n tools that all carry the mark, or one mark.
func wholeSet(t *testing.T, st store.Store, n int, mark string) {
	t.Helper()
	list := mustList(t, st, store.ListOptions{})
	if list.Total != n || len(list.Records) != n {
		t.Errorf("%d objects, want %d", list.Total, n)
		return
	}
	for _, r := range list.Records {
		x := r.Object.(*v1.Tool)
		if mark == "" {
			mark = x.Metadata.Labels["mark"]
		}
		if x.Metadata.Labels["mark"] != mark || !strings.HasSuffix(x.Spec.Description, ", "+mark) {
			t.Errorf("%s is of apply %q, want %q: a mix", r.Key(), x.Metadata.Labels["mark"], mark)
			return
		}
	}
}

func policy(name string) *v1.ToolPolicy {
	p := v1.NewObject(v1.KindToolPolicy).(*v1.ToolPolicy)
	p.Metadata.Name = name
	p.Spec.Allowlist = []string{}
	return p
}

func actions(changes []store.Change) []string {
	var s []string
	for _, c := range changes {
		s = append(s, c.Key.String()+" "+string(c.Action))
	}
	return s
}

func names(list store.List) []string {
	var s []string
	for _, r := range list.Records {
		s = append(s, r.Key().Name)
	}
	return s
}

// testApplyCancelled: an apply whose context has ended changes nothing.
func testApplyCancelled(t *testing.T, backend Backend) {
	st := backend.open(t)
	mustApply(t, st, Tools(20, "a"), store.ApplyOptions{Set: "s"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := st.Apply(ctx, Tools(20, "b"), store.ApplyOptions{Set: "s"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wholeSet(t, st, 20, "a")
}

// testApplyAtTheSameTime: after concurrent applies all objects come from one apply, and every change has its own
// resourceVersion.
func testApplyAtTheSameTime(t *testing.T, backend Backend) {
	const writers, rounds, size = 4, 5, 15
	disk := backend.New(t)
	st := open(t, disk)
	mustApply(t, st, Tools(size, "start"), store.ApplyOptions{Set: "s"})
	var wg sync.WaitGroup
	for w := range writers {
		mine := open(t, disk)
		wg.Go(func() {
			for i := range rounds {
				if _, err := mine.Apply(t.Context(), Tools(size, fmt.Sprintf("%d-%d", w, i)), store.ApplyOptions{Set: "s", Prune: true}); err != nil {
					t.Error(err)
				}
				list := mustList(t, mine, store.ListOptions{})
				wholeSet(t, mine, size, "")
				if list.ResourceVersion%size != 0 {
					t.Errorf("a list at %d, in the middle of an apply", list.ResourceVersion)
				}
			}
		})
	}
	wg.Wait()
	if at, err := st.Revision(t.Context()); err != nil || at != size*(1+writers*rounds) {
		t.Errorf("revision %d, %v: want %d", at, err, size*(1+writers*rounds))
	}
}

func testDryRunChangesNothing(t *testing.T, backend Backend) {
	st := backend.open(t)
	mustApply(t, st, Tools(50, "a"), store.ApplyOptions{Set: "s"})
	next := append(Tools(20, "b"), Tools(60, "a")[20:]...)
	opts := store.ApplyOptions{Set: "s", Prune: true, DryRun: true}
	dry := mustApply(t, st, next[:55], opts)
	wholeSet(t, st, 50, "a")
	if lines, err := store.ListAudit(t.Context(), st, store.AuditFilter{}); err != nil || len(lines) != 50 {
		t.Errorf("%d lines of the audit, %v: want those of the first apply", len(lines), err)
	}
	opts.DryRun = false
	ignore := cmp.Options{cmpopts.IgnoreFields(store.Record{}, "Created", "Updated", "UID"), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(dry, mustApply(t, st, next[:55], opts), ignore); diff != "" {
		t.Errorf("the dry run told something else (-dry +real):\n%s", diff)
	}
}

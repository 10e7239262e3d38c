package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

func contains(err error, parts ...string) bool {
	return err != nil && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(err.Error(), p) })
}

func testAudit(t *testing.T, backend Backend) {
	disk := backend.New(t)
	st := open(t, disk)
	start := time.Date(2026, 11, 21, 7, 0, 0, 123456789, time.UTC)
	var lines []v1.AuditRecord
	for i := range 6 {
		l := v1.AuditRecord{
			Time: start.Add(time.Duration(i) * time.Minute), CallID: fmt.Sprint(i), Principal: "me", Turn: "1", Namespace: "default",
			Tool: []string{"get", "pay"}[i%2], Session: []string{"s", "t", "t"}[i%3], Status: []string{v1.StatusComplete, v1.StatusFailed}[i/3],
			ArgsHash: "ab", Args: []byte(`{"n":9007199254740993,"t":"<&>"}`), Policy: &v1.PolicyDecision{Decision: v1.DecisionAllow}, DurationMS: 1.25,
		}
		lines = append(lines, l)
		if err := st.AppendAudit(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name   string
		filter store.AuditFilter
		want   []int
	}{
		{"all", store.AuditFilter{}, []int{0, 1, 2, 3, 4, 5}},
		{"the newest", store.AuditFilter{Limit: 2}, []int{4, 5}},
		{"more than there are", store.AuditFilter{Limit: 99}, []int{0, 1, 2, 3, 4, 5}},
		{"since", store.AuditFilter{Since: start.Add(3 * time.Minute)}, []int{3, 4, 5}},
		{"since, in another zone", store.AuditFilter{Since: start.Add(3 * time.Minute).In(time.FixedZone("x", 3600))}, []int{3, 4, 5}},
		{"tool", store.AuditFilter{Tool: "pay"}, []int{1, 3, 5}},
		{"session", store.AuditFilter{Session: "t"}, []int{1, 2, 4, 5}},
		{"status", store.AuditFilter{Status: v1.StatusFailed}, []int{3, 4, 5}},
		{"together", store.AuditFilter{Tool: "pay", Session: "t", Since: start, Limit: 1}, []int{5}},
		{"namespace", store.AuditFilter{Namespace: "default", Limit: 2}, []int{4, 5}},
		{"another namespace", store.AuditFilter{Namespace: "other"}, nil},
		{"principal", store.AuditFilter{Principal: "me", Limit: 1}, []int{5}},
		{"another principal", store.AuditFilter{Principal: "you"}, nil},
		{"none", store.AuditFilter{Tool: "p%"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := store.ListAudit(t.Context(), open(t, disk), tc.filter)
			if err != nil {
				t.Fatal(err)
			}
			var want []v1.AuditRecord
			for _, i := range tc.want {
				want = append(want, lines[i])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}

	before := time.Now()
	if err := st.AppendAudit(t.Context(), v1.AuditRecord{Tool: "now"}); err != nil {
		t.Fatal(err)
	}
	if got, err := store.ListAudit(t.Context(), st, store.AuditFilter{Since: before}); err != nil || len(got) != 1 || got[0].Tool != "now" {
		t.Errorf("a line without a time: %+v, %v", got, err)
	}
	if err := st.AppendAudit(t.Context(), v1.AuditRecord{CallID: "c1", Args: []byte("{")}); !contains(err, `call "c1" cannot be recorded`) {
		t.Errorf("broken arguments: %v", err)
	}
	if _, err := store.ListAudit(t.Context(), st, store.AuditFilter{Limit: -1}); !contains(err, "limit -1 may not be negative") {
		t.Error(err)
	}
}

// testAuditOfChanges: every change of an object has a record with the old and the new version.
func testAuditOfChanges(t *testing.T, backend Backend) {
	st := backend.open(t)
	mustApply(t, st, Tools(2, "a"), store.ApplyOptions{Set: "s", By: "ann"})
	mustApply(t, st, Tools(1, "b"), store.ApplyOptions{Set: "s", By: "bob", Command: "edit"})
	mustApply(t, st, Tools(1, "b"), store.ApplyOptions{Set: "s", Prune: true})
	if _, err := st.Delete(t.Context(), []v1.Key{keyOf(v1.KindTool, "tool-0000")}, store.DeleteOptions{By: "eve"}); err != nil {
		t.Fatal(err)
	}
	lines, err := store.ListAudit(t.Context(), st, store.AuditFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		c := l.Change
		got = append(got, fmt.Sprintf("%s %s %s %s %s %s %d-%d", l.Status, l.Principal, c.Command, c.Action, l.Tool, c.Set, c.From, c.To))
	}
	want := []string{
		"changed ann apply created tool-0000 s 0-1", "changed ann apply created tool-0001 s 0-2", "changed bob edit configured tool-0000 s 1-3",
		"changed  apply pruned tool-0001 s 2-4", "changed eve delete deleted tool-0000 s 3-5",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if check := verified(t, st, ""); check.Broken != nil || check.Lines != 5 {
		t.Errorf("%+v", check)
	}
}

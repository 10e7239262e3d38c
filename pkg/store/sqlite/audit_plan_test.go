package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// TestAuditIsReadByRanges: with any filter, every page begins where the previous one ended. A query that scans the
// table, or sorts the result of another index, would need minutes for a million records.
func TestAuditIsReadByRanges(t *testing.T) {
	st := create(t, filepath.Join(t.TempDir(), "state.db"))
	for i := range 1200 { // three pages
		if err := st.AppendAudit(t.Context(), auditLine(i)); err != nil {
			t.Fatal(err)
		}
	}
	since := auditLine(600).Time
	for name, filter := range map[string]store.AuditFilter{
		"all": {}, "after": {After: 10, UpTo: 1100}, "settled": {Settled: true}, "the newest": {Limit: 100, Settled: true},
		"since": {Since: since}, "tool": {Tool: "get"}, "pattern": {Tool: "g*"}, "principal": {Principal: "me"}, "session": {Session: "s", Since: since},
		"status": {Status: v1.StatusComplete, Since: since, Limit: 700}, "namespace": {Namespace: "default", Since: time.Unix(0, 0)},
	} {
		plans, err := st.AuditPlans(t.Context(), filter)
		if err != nil || len(plans) < 3 {
			t.Fatalf("%s: %d plans, %v", name, len(plans), err)
		}
		ranges := 0
		for _, plan := range plans {
			if strings.Contains(plan, "SCAN audit\n") || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("%s: it reads more than it hands out:\n%s", name, plan)
			}
			if n := strings.Count(plan, " id > "); n > 1 { // the plan of two bounds looks like that of one, and only one is used
				t.Errorf("%s: %d lower bounds, of which SQLite uses one:\n%s", name, n, plan)
			}
			if strings.Contains(plan, "SEARCH audit USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)") {
				ranges++
			}
		}
		if ranges < 2 {
			t.Errorf("%s: only %d of its queries are ranges of lines:\n%s", name, ranges, strings.Join(plans, "\n"))
		}
	}
}

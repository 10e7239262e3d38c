package postgres_test

import (
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// TestTampered: the check reports every change in the tables.
func TestTampered(t *testing.T) {
	for change, want := range map[string]string{
		"UPDATE toolctl_audit SET record = replace(convert_from(record, 'UTF8'), 'bob', 'eve')::bytea WHERE seq = 2": "its hash does not match",
		"UPDATE toolctl_audit SET principal = 'eve' WHERE seq = 2":                                                   "its column principal was changed",
		"DELETE FROM toolctl_audit WHERE seq = 2":                                                                    "it was removed",
		"DELETE FROM toolctl_audit WHERE seq = 3":                                                                    "at the end",
		"UPDATE toolctl_heads SET hash = sha256('x')":                                                                "the stored head has a different hash",
		"DELETE FROM toolctl_audit_open":                                                                             "calls without an outcome",
		"":                                                                                                           "",
	} {
		dsn := newStore(t)
		st := open(t, dsn, store.Options{})
		for _, status := range []string{v1.StatusComplete, v1.StatusFailed, v1.StatusStarted} {
			if err := st.AppendAudit(t.Context(), v1.AuditRecord{CallID: "c", Principal: "bob", Session: "a\x00b\xff", Status: status}); err != nil {
				t.Fatal(err)
			}
		}
		if change != "" {
			_, schema, _ := strings.Cut(dsn, "search_path=")
			schema, _, _ = strings.Cut(schema, "&")
			if err := server(t).Exec(t.Context(), strings.ReplaceAll(change, "toolctl_", schema+".toolctl_")); err != nil {
				t.Fatal(err)
			}
		}
		check, err := st.VerifyAudit(t.Context(), "")
		switch {
		case err != nil:
			t.Errorf("%s: %v", change, err)
		case want == "" && check.Broken != nil, want != "" && (check.Broken == nil || !strings.Contains(check.Broken.Error(), want)):
			t.Errorf("%s: %+v, want %q", change, check.Broken, want)
		}
	}
}

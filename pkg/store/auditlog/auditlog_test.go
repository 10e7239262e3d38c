package auditlog_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/auditlog"
	"toolctl.dev/toolctl/pkg/store/memory"
)

func filled(t testing.TB, n int) *memory.Store {
	t.Helper()
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	for i := range n {
		r := v1.AuditRecord{Time: time.Date(2026, 11, 22, i, 0, 0, 0, time.UTC), Tool: "=cmd()", Session: "s", Status: v1.StatusComplete, Args: []byte(`{"n":9007199254740993}`)}
		if err := st.AppendAudit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

// TestReadsWhatItWrites: Read accepts the output of WriteJSON, and records without their place in the chain.
func TestReadsWhatItWrites(t *testing.T) {
	st := filled(t, 3)
	var b bytes.Buffer
	if err := st.EachAudit(t.Context(), store.AuditFilter{}, func(l store.AuditLine) error { return auditlog.WriteJSON(&b, l) }); err != nil {
		t.Fatal(err)
	}
	all, err := auditlog.Read(strings.NewReader(b.String()), time.Time{})
	if err != nil || len(all) != 3 || string(all[0].Args) != `{"n":9007199254740993}` {
		t.Errorf("got %+v, %v", all, err)
	}
	some, err := auditlog.Read(strings.NewReader(b.String()), all[1].Time)
	if err != nil || len(some) != 2 {
		t.Errorf("got %d since the second, %v", len(some), err)
	}
	if _, err := auditlog.Read(strings.NewReader(`{"tool":"a"}{"tol":"b"}`), time.Time{}); err == nil || !strings.Contains(err.Error(), "record 2: expected an audit record") {
		t.Errorf("got %v", err)
	}
	if err := auditlog.WriteJSON(&b, store.AuditLine{ID: 7, Text: []byte("[1]")}); err == nil {
		t.Error("a line that is not an object was written")
	}
}

func TestCSVHoldsNoFormula(t *testing.T) {
	st := filled(t, 1)
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := st.EachAudit(t.Context(), store.AuditFilter{}, func(l store.AuditLine) error { return auditlog.WriteCSV(w, l) }); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 1 || len(rows[0]) != len(auditlog.Columns) || rows[0][7] != "'=cmd()" {
		t.Errorf("got %q, %v", rows, err)
	}
}

// TestAnchor: a head is recorded once, and a file keeps the earlier ones.
func TestAnchor(t *testing.T) {
	st := filled(t, 1)
	file := filepath.Join(t.TempDir(), "heads.jsonl")
	a := &auditlog.Anchor{To: file}
	for range 2 {
		if err := a.Note(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.AppendAudit(t.Context(), v1.AuditRecord{Tool: "b"}); err != nil {
		t.Fatal(err)
	}
	if err := a.Note(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || bytes.Count(text, []byte("\n")) != 2 || !bytes.Contains(text, []byte(`"lines":2`)) {
		t.Errorf("got %s, %v", text, err)
	}
	// Another process, on a store that was restored from an older backup.
	old := &auditlog.Anchor{To: file}
	if err := old.Note(t.Context(), filled(t, 1)); !errors.As(err, new(*auditlog.BehindError)) || !strings.Contains(err.Error(), "the audit has 1 line, and 2 were noted before: the store was restored from an older backup") {
		t.Errorf("an older store: %v", err)
	}
	for to, good := range map[string]bool{"heads": true, "https://log.example.com/heads": true, "ftp://h/": false, "http://": false} {
		if err := (&auditlog.Anchor{To: to}).Check(); (err == nil) != good {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func ExampleRead() {
	st := memory.New(memory.Options{})
	defer st.Close()
	ctx := context.Background()
	_ = st.AppendAudit(ctx, v1.AuditRecord{Time: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), Tool: "get-weather", Status: v1.StatusComplete})
	var b bytes.Buffer
	_ = st.EachAudit(ctx, store.AuditFilter{}, func(l store.AuditLine) error { return auditlog.WriteJSON(&b, l) })
	records, err := auditlog.Read(&b, time.Time{})
	fmt.Println(records[0].Tool, records[0].Status, err)
	// Output: get-weather complete <nil>
}

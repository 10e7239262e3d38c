package storetest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// testCopy: a copy has all data of a store and continues its counts. A store in memory cannot be copied.
func testCopy(t *testing.T, backend Backend) {
	from, to := backend.open(t), backend.open(t)
	if _, ok := from.(store.Copier); !ok {
		if err := store.Copy(t.Context(), to, from); !errors.Is(err, store.ErrNoCopy) {
			t.Errorf("Copy: %v, want %v", err, store.ErrNoCopy)
		}
		return
	}
	fillStore(t, from)
	copyAll(t, to, from)
	if err := store.Copy(t.Context(), to, from); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("Copy to a store that has something: %v, want %v", err, store.ErrNotEmpty)
	}
	copyAll(t, backend.open(t), to) // a copy of a copy

	// If some data cannot be copied, nothing is copied.
	broken, half := errors.New("broken"), backend.open(t)
	if err := store.Copy(t.Context(), half, brokenStore{from, broken}); !errors.Is(err, broken) {
		t.Errorf("Copy: %v, want %v", err, broken)
	}
	if r, err := store.Check(t.Context(), half); err != nil || r.Objects+r.Overrides+r.Approvals+r.Runs+r.Revisions+int(r.Audit.Lines) > 0 {
		t.Errorf("half a copy: %+v, %v", r, err)
	}
	copyAll(t, half, from)
}

// TestCopyBetween copies stores of two kinds to each other and compares them.
func TestCopyBetween(t *testing.T, one, other Backend) {
	first, second, third := one.open(t), other.open(t), one.open(t)
	fillStore(t, first)
	copyAll(t, second, first)
	copyAll(t, third, second)
}

// brokenStore is a store whose last table cannot be read.
type brokenStore struct {
	store.Store
	err error
}

func (b brokenStore) CopyOut(ctx context.Context, read func(store.Rows) error) error {
	return b.Store.(store.Copier).CopyOut(ctx, func(rows store.Rows) error {
		return read(func(t store.Table) iter.Seq2[[]any, error] {
			if t.Name == "revision_objects" {
				return func(yield func([]any, error) bool) { yield(nil, b.err) }
			}
			return rows(t)
		})
	})
}

func (b brokenStore) CopyIn(context.Context, []store.Table, store.Rows) error { return b.err }

// fillStore adds data of each kind to a store.
func fillStore(t *testing.T, st store.Store) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	opts := store.ApplyOptions{Set: "a", Prune: true, By: "me", Commit: "c0ffee"}
	mustApply(t, st, []v1.Object{Tool("one", "a"), Tool("two", "a")}, opts)
	mustApply(t, st, []v1.Object{Tool("one", "b"), Tool("three", "a")}, opts)
	for i := 1; i <= 700; i++ {
		must(st.AppendAudit(ctx, auditLine(i)))
	}
	begun := auditLine(701)
	begun.Status = v1.StatusStarted
	must(st.AppendAudit(ctx, begun))
	_, err := st.PruneAudit(ctx, store.PruneOptions{Before: auditLine(100).Time, By: "me"})
	must(err)
	_, err = st.SetOverride(ctx, store.Override{Tool: "one", Description: "new\u2028 words", Author: "me"})
	must(err)
	_, _, err = st.Reserve(ctx, []v1.Counter{{Key: "for good", Limit: 10}, {Key: "windowed", Limit: 10, Window: 1000 * time.Hour}})
	must(err)
	now := time.Now().UTC().Truncate(time.Microsecond)
	for _, id := range []string{"z", "a", "m"} {
		_, err = st.TakeApproval(ctx, v1.PendingCall{ID: id, Subject: id, Tool: "one", State: v1.ApprovalPending, Created: now, Expires: now.Add(time.Hour),
			Principal: "ann", Args: json.RawMessage(`{"n":9007199254740993}`)}, "")
		must(err)
	}
	for _, id := range []string{"Second", "First"} {
		must(st.PutRun(ctx, store.Run{ID: id, Prompt: "default/trip", State: []byte("{\"text\":\"\x00\xff\"}" + id)}))
	}
	_, err = st.DecideApproval(ctx, "a", v1.Decision{Approved: true, By: "bob", Args: json.RawMessage(`{"n":1}`)}, now)
	must(err)
}

func copyAll(t *testing.T, to, from store.Store) {
	t.Helper()
	if err := store.Copy(t.Context(), to, from); err != nil {
		t.Fatal(err)
	}
	want, got := content(t, from), content(t, to)
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("the copy has\n%+v, want\n%+v", got[i], want[i])
		}
	}
	// It continues with the numbers of the other.
	for _, st := range []store.Store{from, to} {
		if err := st.AppendAudit(t.Context(), auditLine(800)); err != nil {
			t.Fatal(err)
		}
		if check := verified(t, st, ""); check.Broken != nil {
			t.Error(check.Broken)
		}
	}
	h1, err1 := from.AuditHead(t.Context())
	h2, err2 := to.AuditHead(t.Context())
	if err1 != nil || err2 != nil || h1 != h2 {
		t.Errorf("heads %+v and %+v, %v, %v", h1, h2, err1, err2)
	}
}

// content returns all data that the methods of a store return.
func content(t *testing.T, st store.Store) []any {
	t.Helper()
	ctx := t.Context()
	var errs []error
	collect := func(v any, err error) any { errs = append(errs, err); return v }
	list, err := st.List(ctx, store.ListOptions{})
	errs = append(errs, err)
	var lines []string
	errs = append(errs, st.EachAudit(ctx, store.AuditFilter{}, func(l store.AuditLine) error {
		lines = append(lines, l.Hash+string(l.Text)+hex.EncodeToString([]byte{byte(l.ID)}))
		return nil
	}))
	var pinned []any
	revisions, err := st.Revisions(ctx, store.RevisionQuery{})
	errs = append(errs, err)
	for _, r := range revisions {
		pinned = append(pinned, collect(st.RevisionObjects(ctx, r.Set, r.Number)))
	}
	var events []store.Event
	for e, err := range st.Watch(ctx, 1) {
		if errs = append(errs, err); err != nil {
			break
		}
		if events = append(events, e); e.Record.ResourceVersion == list.ResourceVersion {
			break
		}
	}
	runs, err := st.ListRuns(ctx)
	errs = append(errs, err)
	for i := range runs {
		runs[i], err = st.GetRun(ctx, runs[i].ID)
		errs = append(errs, err)
	}
	calls, err := st.ListApprovals(ctx)
	errs = append(errs, err)
	var edited []string
	for _, c := range calls {
		edited = append(edited, string(c.EditedArgs))
	}
	found := []any{
		list, lines, revisions, pinned, events, runs, calls, edited, collect(st.Overrides(ctx)), collect(st.OverrideHistory(ctx, "default", "one")),
		collect(st.Read(ctx, []v1.Counter{{Key: "for good"}, {Key: "windowed", Window: 1000 * time.Hour}})), collect(st.AuditHead(ctx)),
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return found
}

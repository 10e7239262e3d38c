package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// testLimit: a change that would exceed the limit of the store is refused and changes nothing.
func testLimit(t *testing.T, backend Backend) {
	st := openWith(t, backend.New(t), store.Options{MaxBytes: 1 << 20})
	mustApply(t, st, Tools(5, "a"), store.ApplyOptions{Set: "s"})
	if _, err := st.Apply(t.Context(), Tools(5000, "b"), store.ApplyOptions{Set: "s"}); !errors.Is(err, store.ErrLimit) {
		t.Errorf("got %v, want %v", err, store.ErrLimit)
	}
	wholeSet(t, st, 5, "a")
	if check := verified(t, st, ""); check.Broken != nil || check.Lines != 5 {
		t.Errorf("the audit: %+v", check)
	}
}

// testSize: a store reports its size, which grows with the applied objects.
func testSize(t *testing.T, backend Backend) {
	st, ok := backend.open(t).(store.Sized)
	if !ok {
		t.Skip("the store is kept nowhere")
	}
	before, err := st.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, st.(store.Store), Tools(500, "a"), store.ApplyOptions{Set: "s"})
	after, err := st.Size(t.Context())
	if err != nil || before <= 0 || after < before+100_000 {
		t.Errorf("%d bytes, and %d after an apply of 500 tools, %v", before, after, err)
	}
}

func testClosed(t *testing.T, backend Backend) {
	st := backend.open(t)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	key := keyOf(v1.KindTool, "x")
	for name, call := range map[string]func(context.Context) error{
		"apply": func(ctx context.Context) error {
			_, err := st.Apply(ctx, Tools(1, "a"), store.ApplyOptions{})
			return err
		},
		"delete": func(ctx context.Context) error {
			_, err := st.Delete(ctx, []v1.Key{key}, store.DeleteOptions{})
			return err
		},
		"get":       func(ctx context.Context) error { _, err := st.Get(ctx, key); return err },
		"list":      func(ctx context.Context) error { _, err := st.List(ctx, store.ListOptions{}); return err },
		"audit":     func(ctx context.Context) error { return st.AppendAudit(ctx, auditLine(1)) },
		"verify":    func(ctx context.Context) error { _, err := st.VerifyAudit(ctx, ""); return err },
		"pending":   func(ctx context.Context) error { _, err := st.CountPending(ctx, noon); return err },
		"approvals": func(ctx context.Context) error { _, err := st.ListApprovals(ctx); return err },
		"override":  func(ctx context.Context) error { _, err := st.SetOverride(ctx, store.Override{Tool: "x"}); return err },
		"revisions": func(ctx context.Context) error { _, err := st.Revisions(ctx, store.RevisionQuery{}); return err },
		"leases": func(ctx context.Context) error {
			_, _, err := st.HoldLeases(ctx, "a", []store.Lease{{Name: "x"}}, time.Minute)
			return err
		},
		"run":       func(ctx context.Context) error { return st.PutRun(ctx, store.Run{ID: "x"}) },
		"runs":      func(ctx context.Context) error { _, err := st.ListRuns(ctx); return err },
		"return":    func(ctx context.Context) error { return st.ReturnLeases(ctx, "a") },
		"await":     func(ctx context.Context) error { _, err := st.AwaitApproval(ctx, "x"); return err },
		"overrides": func(ctx context.Context) error { _, err := st.Overrides(ctx); return err },
		"vectors":   func(ctx context.Context) error { _, err := st.Vectors(ctx, []string{"x"}); return err },
	} {
		if err := call(t.Context()); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, store.ErrClosed)
		}
	}
	if err := st.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// Expired counts are removed by the first reservation of another process.
func TestExpiredCountersAreDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	st := create(t, path)
	var many []v1.Counter
	for i := range 100 {
		many = append(many, v1.Counter{Key: fmt.Sprint(i), Limit: -1, Idle: time.Microsecond})
	}
	if _, _, err := st.Reserve(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	if _, _, err := st.Reserve(t.Context(), []v1.Counter{{Key: "kept", Limit: 1, Window: time.Hour}, {Key: "good", Limit: 1}, {Key: "idle", Limit: 1, Idle: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(t, path).Reserve(t.Context(), []v1.Counter{{Key: "new", Limit: -1}}); err != nil {
		t.Fatal(err)
	}
	if n := query(t, path, "SELECT count(*) FROM counters"); n != "4" {
		t.Errorf("%s counters are kept, want 4", n)
	}
}

// TestBusy: if a writer of another process does not end, the error comes in bounded time; if it ends, the call waits
// for it.
func TestBusy(t *testing.T) {
	path := filled(t, 1)
	other := open(t, path)
	c, err := other.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	st := openWith(t, path, store.Options{BusyTimeout: 10 * time.Millisecond})
	_, err = st.Apply(t.Context(), tools(1, "b"), store.ApplyOptions{})
	if !errors.Is(err, store.ErrBusy) || !contains(err, path, "locked by another process for ", "try again, or end that process") {
		t.Errorf("apply: %v", err)
	}
	if n := mustList(t, st, store.ListOptions{}).Total; n != 1 {
		t.Errorf("a reader sees %d objects while another writes", n)
	}

	patient := open(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := patient.Apply(ctx, tools(1, "b"), store.ApplyOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a waiting apply whose context ends: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := patient.Apply(t.Context(), tools(1, "c"), store.ApplyOptions{})
		done <- err
	}()
	if _, err := c.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("a waiting apply: %v", err)
	}
	wholeSet(t, st, 1, "c")
}

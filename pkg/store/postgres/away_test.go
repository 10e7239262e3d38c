package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres/pgtest"
)

// own returns a server that a test may stop.
func own(t *testing.T) (*pgtest.Server, string) {
	t.Helper()
	server(t) // skips the test without a server
	s, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	dsn, err := s.NewStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, dsn
}

// TestAway: while the database is unavailable every method returns that error and counts or writes nothing. The store
// recovers by itself.
func TestAway(t *testing.T) {
	srv, dsn := own(t)
	st := open(t, dsn, store.Options{})
	apply(t, st, "a")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events := make(chan error, 8)
	var watching sync.WaitGroup
	watching.Go(func() {
		for e, err := range st.Watch(ctx, 0) {
			if err == nil && e.Record.Key().Name == "a" {
				events <- nil
				continue
			}
			if err == nil && e.Record.Key().Name != "b" {
				err = fmt.Errorf("an event of %s", e.Record.Key())
			}
			events <- err
			return
		}
	})
	if err := <-events; err != nil {
		t.Fatal(err)
	}
	c := []v1.Counter{{Key: "k", Limit: 2}}
	if _, full, err := st.Reserve(ctx, c); full >= 0 || err != nil {
		t.Fatal(full, err)
	}
	srv.Stop(syscall.SIGQUIT) // as if its machine had failed
	for name, f := range map[string]func() error{
		"reserve": func() error { _, _, err := st.Reserve(ctx, c); return err },
		"release": func() error { return st.Release(ctx, c) },
		"read":    func() error { _, err := st.Read(ctx, c); return err },
		"audit":   func() error { return st.AppendAudit(ctx, v1.AuditRecord{Tool: "t"}) },
		"list":    func() error { _, err := st.List(ctx, store.ListOptions{}); return err },
		"take":    func() error { _, err := st.TakeApproval(ctx, v1.PendingCall{ID: "x"}, ""); return err },
	} {
		if err := f(); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), `store "postgres://`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	if counts, full, err := st.Reserve(ctx, c); full >= 0 || err != nil || counts[0].Used != 1 {
		t.Errorf("after it came back: %v, full %d, %v", counts, full, err)
	}
	apply(t, open(t, dsn, store.Options{}), "b")
	if err := <-events; err != nil {
		t.Errorf("the watch after it came back: %v", err)
	}
	watching.Wait()
	if check, err := st.VerifyAudit(ctx, ""); err != nil || check.Broken != nil || check.Lines != 2 {
		t.Errorf("the audit: %+v, %v", check, err)
	}
}

// TestNeverOver: if connections end, no more is reserved than the limit, at most the running reservations are lost, and
// the audit log is one chain with every acknowledged record.
func TestNeverOver(t *testing.T) {
	const limit, callers, rounds = 500, 32, 30
	dsn := newStore(t)
	stores := []store.Store{open(t, dsn, store.Options{}), open(t, dsn, store.Options{}), open(t, dsn, store.Options{})}
	c := []v1.Counter{{Key: "a", Limit: limit}, {Key: "b", Limit: -1}, {Key: "c", Limit: limit}}
	var granted, unknown, written, lost atomic.Int64
	var kills, done atomic.Int64
	kill := func() {
		if done.Add(1)%50 != 0 {
			return
		}
		kills.Add(1)
		if err := server(t).Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'toolctl'"); err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for i := range callers {
		st := stores[i%len(stores)]
		wg.Go(func() {
			for range rounds {
				kill()
				switch _, full, err := st.Reserve(t.Context(), c); {
				case errors.Is(err, store.ErrUnavailable):
					unknown.Add(1)
				case err != nil:
					t.Error(err)
				case full < 0:
					granted.Add(1)
				}
				switch err := st.AppendAudit(t.Context(), v1.AuditRecord{Tool: "t"}); {
				case errors.Is(err, store.ErrUnavailable):
					lost.Add(1)
				case err != nil:
					t.Error(err)
				default:
					written.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d times the connections ended: %d granted, %d unknown, %d lines written, %d unknown", kills.Load(), granted.Load(), unknown.Load(), written.Load(), lost.Load())
	if granted.Load() > limit || granted.Load()+unknown.Load() < limit {
		t.Errorf("%d granted and %d unknown of %d", granted.Load(), unknown.Load(), limit)
	}
	var counts []v1.Count
	var err error
	for range 100 { // the pools may still have killed connections
		if counts, err = stores[0].Read(t.Context(), c); err == nil {
			break
		}
	}
	if err != nil || counts[0] != counts[1] || counts[0] != counts[2] || counts[0].Used > limit || counts[0].Used < granted.Load() {
		t.Errorf("counted %v, %v: %d were granted", counts, err, granted.Load())
	}
	check, err := open(t, dsn, store.Options{}).VerifyAudit(t.Context(), "")
	if err != nil || check.Broken != nil || check.Lines < written.Load() || check.Lines > written.Load()+lost.Load() {
		t.Errorf("the audit: %+v, %v", check, err)
	}
}

package postgres_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres"
)

// TestFrozen: while the processes of a database are frozen, each method returns ErrUnavailable well before the timeout
// of a call. The store recovers with the database.
func TestFrozen(t *testing.T) {
	srv, dsn := own(t)
	st := open(t, dsn, store.Options{})
	c := []v1.Counter{{Key: "k", Limit: 100}}
	if _, _, err := st.Reserve(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	thaw, err := srv.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	frozen := true
	t.Cleanup(func() {
		if frozen {
			_ = thaw()
		}
	})
	const call = v1.DefaultTimeoutMS * time.Millisecond
	began := time.Now()
	for _, m := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"ping", func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return store.Ping(ctx, st)
		}},
		{"hold", func(ctx context.Context) error {
			_, _, err := st.HoldLeases(ctx, "me", []store.Lease{{Name: "x"}}, time.Minute)
			return err
		}},
		{"reserve", func(ctx context.Context) error { _, _, err := st.Reserve(ctx, c); return err }},
		{"audit", func(ctx context.Context) error { return st.AppendAudit(ctx, v1.AuditRecord{Tool: "t"}) }},
		{"release", func(ctx context.Context) error { return st.Release(ctx, c) }},
	} {
		if err := m.do(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", m.name, err)
		}
		if took := time.Since(began); took > call*2/3 { // each took 30 s before
			t.Fatalf("%s: %s after it stood still", m.name, took)
		}
	}
	t.Logf("all methods of a call said so within %s", time.Since(began).Round(time.Millisecond))
	frozen = false
	if err := thaw(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if _, _, err = st.Reserve(t.Context(), c); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("when it goes on: %v", err)
		}
	}
	if err := store.Ping(t.Context(), st); err != nil {
		t.Error(err)
	}
	t.Logf("back within %s", time.Since(began).Round(time.Millisecond))
}

// TestDeadConnections: the kernel ends a connection whose peer no longer answers.
func TestDeadConnections(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := postgres.Dial(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		for option, want := range map[int]int{unix.TCP_USER_TIMEOUT: 10_000, unix.TCP_KEEPIDLE: 5, unix.TCP_KEEPINTVL: 2, unix.TCP_KEEPCNT: 3} {
			if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); err != nil || got != want {
				t.Errorf("option %d is %d, %v; want %d", option, got, err, want)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

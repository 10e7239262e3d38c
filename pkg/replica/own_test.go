package replica_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/replica"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// deaf is a lease store that is unreachable while away is set, and returns the result of an acquisition after late.
type deaf struct {
	store.Leases
	away atomic.Bool
	late atomic.Pointer[func()]
}

func (d *deaf) HoldLeases(ctx context.Context, holder string, leases []store.Lease, lasts time.Duration) ([]store.Lease, time.Time, error) {
	if d.away.Load() {
		return nil, time.Time{}, store.ErrUnavailable
	}
	all, now, err := d.Leases.HoldLeases(ctx, holder, leases, lasts)
	if late := d.late.Load(); late != nil && len(leases) == 1 && leases[0].Name == "server/x" {
		(*late)()
	}
	return all, now, err
}

func joinAt(t *testing.T, st store.Leases, address string, lasts time.Duration) *replica.Member {
	t.Helper()
	m, err := replica.Join(t.Context(), replica.Options{Keys: shared, Leases: st, Address: address, Every: 5 * time.Millisecond, Lasts: lasts})
	if err != nil {
		t.Fatal(err)
	}
	m.Run()
	t.Cleanup(m.Leave)
	return m
}

func TestOwn(t *testing.T) {
	kept := memory.New(memory.Options{})
	t.Cleanup(func() { kept.Close() })
	st := &deaf{Leases: kept}
	a, b := joinAt(t, st, "http://127.0.0.1:1", 200*time.Millisecond), joinAt(t, st.Leases, "http://127.0.0.1:2", 200*time.Millisecond)
	never := func() { t.Error("a lease was lost that was renewed") }
	own := func(m *replica.Member, want string, wantErr error, lost func()) {
		t.Helper()
		if got, err := m.Own(t.Context(), "server/x", lost); got != want || !errors.Is(err, wantErr) {
			t.Errorf("%q, %v: want %q, %v", got, err, want, wantErr)
		}
	}
	own(a, a.ID(), nil, never)
	own(b, a.ID(), nil, never)
	own(a, "", replica.ErrBusy, never) // the use of the name has not ended
	a.Disown("server/x")
	lost := make(chan bool, 1)
	own(b, b.ID(), nil, never)
	b.Disown("server/x")
	own(a, a.ID(), nil, func() { lost <- true })
	st.away.Store(true)
	<-lost // before the lease has expired: it has no other owner yet
	own(a, "", replica.ErrBusy, never)
	for {
		if got, err := b.Own(t.Context(), "server/x", never); err != nil {
			t.Fatal(err)
		} else if got == b.ID() {
			break
		}
	}
	st.away.Store(false)
	a.Disown("server/x")
	own(a, b.ID(), nil, never)
	b.Drain()
	b.Disown("server/x")
	own(b, "", replica.ErrBusy, never) // a draining replica acquires no names
	own(a, a.ID(), nil, never)
	own(b, a.ID(), nil, never)
	a.Disown("server/x")
}

// TestOwnLate: if the store answers after the lease has expired, the answer is too late.
func TestOwnLate(t *testing.T) {
	kept := memory.New(memory.Options{})
	t.Cleanup(func() { kept.Close() })
	st := &deaf{Leases: kept}
	a, b := joinAt(t, st, "http://127.0.0.1:1", 200*time.Millisecond), joinAt(t, st.Leases, "http://127.0.0.1:2", 200*time.Millisecond)
	st.late.Store(new(func() {
		for {
			if owner, err := b.Own(t.Context(), "server/x", func() {}); err != nil {
				t.Error(err)
			} else if owner == b.ID() {
				return
			}
		}
	}))
	if owner, err := a.Own(t.Context(), "server/x", func() {}); owner != "" || !errors.Is(err, replica.ErrBusy) {
		t.Errorf("%q, %v: the other replica is %q", owner, err, b.ID())
	}
	st.late.Store(nil)
	if owner, err := a.Own(t.Context(), "server/x", func() {}); owner != b.ID() {
		t.Errorf("%q, %v", owner, err)
	}
	b.Disown("server/x")
}

func TestStream(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	var b *replica.Member
	refuse := atomic.Pointer[error]{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, err := b.AcceptStream(r)
		if err != nil {
			http.Error(w, err.Error(), replica.StatusOf(err))
			return
		}
		replica.TakeStream(w, r, name, func(_ context.Context, name string) (func(io.ReadWriteCloser), error) {
			if err := refuse.Load(); err != nil {
				return nil, *err
			}
			return func(s io.ReadWriteCloser) {
				defer s.Close()
				fmt.Fprintf(s, "%s\n", name)
				_, _ = io.Copy(s, s) // until the other side closes it
			}, nil
		})
	}))
	defer server.Close()
	b = joinAt(t, st, server.URL, time.Minute)
	a := joinAt(t, st, "http://127.0.0.1:1", time.Minute)
	stream, err := a.Open(t.Context(), b.ID(), "server/a b")
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(stream)
	for _, want := range []string{"server/a b\n", "hello\n"} {
		if line, err := in.ReadString('\n'); err != nil || line != want {
			t.Errorf("%q, %v", line, err)
		}
		_, _ = io.WriteString(stream, "hello\n")
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	for want, err := range map[error]error{replica.ErrMoved: replica.ErrMoved, nil: errors.New("no such program")} {
		refuse.Store(&err)
		if _, got := a.Open(t.Context(), b.ID(), "x"); got == nil || want != nil && !errors.Is(got, want) || want == nil && got.Error() != "the replica that runs it: no such program\n" {
			t.Errorf("%v: %v", err, got)
		}
	}
	// No stream opens without the key, or with the credential of another request.
	res, err := http.Get(server.URL + replica.StreamPath + "?name=x")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Error(res.Status)
	}
	b.Drain()
	for { // once the others have noticed
		if _, err := a.Open(t.Context(), b.ID(), "x"); errors.Is(err, replica.ErrMoved) {
			break
		}
	}
}

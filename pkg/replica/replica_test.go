package replica_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"toolctl.dev/toolctl/internal/seal"
	"toolctl.dev/toolctl/internal/until"
	"toolctl.dev/toolctl/pkg/replica"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var shared = seal.Random()

// one is a replica that answers forwarded requests with answer.
type one struct {
	*replica.Member
	server *httptest.Server
	got    chan *http.Request
}

func join(t *testing.T, st store.Leases, keys *seal.Keys, answer http.HandlerFunc) *one {
	t.Helper()
	o := &one{got: make(chan *http.Request, 10)}
	o.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, err := o.Accept(r)
		if errors.Is(err, replica.ErrMisdirected) {
			w.WriteHeader(http.StatusMisdirectedRequest)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if err != nil || !f.Matches(r.Header, body) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		o.got <- r
		w.Header().Set("X-Caller", f.Caller.Principal)
		answer(w, r)
	}))
	t.Cleanup(o.server.Close)
	var err error
	if o.Member, err = replica.Join(t.Context(), replica.Options{Keys: keys, Leases: st, Address: o.server.URL, Every: 5 * time.Millisecond, Lasts: time.Minute}); err != nil {
		t.Fatal(err)
	}
	return o
}

// run runs a replica until the test ends or it is stopped.
func (o *one) run(t *testing.T) (stop func()) {
	o.Run()
	stop = sync.OnceFunc(o.Leave)
	t.Cleanup(stop)
	return stop
}

func request(t *testing.T, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://tools.example.com/mcp?x=1", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer s3cret-of-the-client")
	r.Header.Set("Cookie", "s3cret=of-the-client")
	r.Header.Set("Mcp-Session-Id", "an id")
	r.Header.Set("Mcp-Param-City", "Oslo")
	return r
}

func TestForward(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	a := join(t, st, shared, http.NotFound)
	b := join(t, st, shared, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "answer")
	})
	a.run(t)
	b.run(t)
	w := httptest.NewRecorder()
	begun, err := a.Forward(w, request(t, "text"), b.ID(), []byte("text"), replica.Caller{Principal: "ann"})
	if !begun || err != nil || w.Code != http.StatusTeapot || w.Body.String() != "answer" || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("begun %v, %v: %d %s %v", begun, err, w.Code, w.Body, w.Header())
	}
	got := <-b.got
	for name, values := range got.Header {
		if strings.Contains(strings.Join(values, " "), "s3cret") {
			t.Errorf("the client's %s was forwarded", name)
		}
	}
	if got.URL.Path != replica.Path || got.URL.RawQuery != "" || got.Header.Get("Mcp-Session-Id") != "an id" || got.Header.Get("Mcp-Param-City") != "Oslo" {
		t.Errorf("got %s with %v", got.URL, got.Header)
	}
}

// TestCredential: a request is accepted once, from a replica with the key, and unmodified.
func TestCredential(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	ok := func(http.ResponseWriter, *http.Request) {}
	a, b, c, foreign := join(t, st, shared, ok), join(t, st, shared, ok), join(t, st, shared, ok), join(t, st, seal.Random(), ok)
	for _, m := range []*one{a, b, c, foreign} {
		m.run(t)
	}
	// This is a request from a to b, as an attacker on the network could see it.
	forwarded := func() *http.Request {
		if _, err := a.Forward(httptest.NewRecorder(), request(t, "text"), b.ID(), []byte("text"), replica.Caller{Principal: "ann"}); err != nil {
			t.Fatal(err)
		}
		return <-b.got
	}
	send := func(to *one, seen *http.Request, change func(*http.Request)) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.server.URL+replica.Path, strings.NewReader("text"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = seen.Header.Clone()
		change(r)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer http.DefaultClient.CloseIdleConnections()
		defer res.Body.Close()
		return res.StatusCode
	}
	if code := send(b, forwarded(), func(*http.Request) {}); code != http.StatusUnauthorized {
		t.Errorf("a second time: %d", code)
	}
	if code := send(c, forwarded(), func(*http.Request) {}); code != http.StatusMisdirectedRequest {
		t.Errorf("at another replica: %d", code)
	}
	if _, err := foreign.Forward(httptest.NewRecorder(), request(t, ""), b.ID(), nil, replica.Caller{}); !errors.Is(err, replica.ErrAway) || !strings.Contains(err.Error(), "--replica-key-file") {
		t.Errorf("with another key: %v", err)
	}
	if code := send(b, forwarded(), func(r *http.Request) { r.Header.Del("Toolctl-Replica") }); code != http.StatusUnauthorized {
		t.Errorf("without a credential: %d", code)
	}
}

// TestCredentialIsOfOneRequest: a credential covers a body, the forwarded headers, a method and some seconds.
func TestCredentialIsOfOneRequest(t *testing.T) {
	same := func(*http.Request) string { return "text" }
	for name, tt := range map[string]struct {
		later  time.Duration // by the clock of the receiver
		change func(*http.Request) (body string)
		taken  bool
	}{
		"as it is":        {0, same, true},
		"9 seconds later": {9 * time.Second, same, true},
		"another body":    {0, func(*http.Request) string { return "tex" }, false},
		"another session": {0, func(r *http.Request) string { r.Header.Set("Mcp-Session-Id", "b"); return "text" }, false},
		"one argument":    {0, func(r *http.Request) string { r.Header.Set("Mcp-Param-X", ""); return "text" }, false},
		"another method":  {0, func(r *http.Request) string { r.Method = http.MethodDelete; return "text" }, false},
		"too late":        {11 * time.Second, same, false},
		"from the future": {-11 * time.Second, same, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			st := memory.New(memory.Options{Now: func() time.Time { return now }})
			t.Cleanup(func() { st.Close() })
			taken := false
			var b *replica.Member
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body := tt.change(r)
				f, err := b.Accept(r)
				taken = err == nil && f.Matches(r.Header, []byte(body))
				if errors.Is(err, replica.ErrLate) != (tt.later > 10*time.Second) {
					t.Errorf("%v", err)
				}
			}))
			defer server.Close()
			join := func(address string) *replica.Member {
				m, err := replica.Join(t.Context(), replica.Options{Keys: shared, Leases: st, Address: address, Every: time.Hour, Lasts: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				m.Run()
				t.Cleanup(m.Leave)
				return m
			}
			a := join("http://127.0.0.1:1")
			now = now.Add(tt.later)
			b = join(server.URL)
			if _, err := a.Forward(httptest.NewRecorder(), request(t, "text"), b.ID(), []byte("text"), replica.Caller{}); err != nil {
				t.Fatal(err)
			}
			if taken != tt.taken {
				t.Errorf("taken: %v", taken)
			}
		})
	}
}

// TestClocksAndKeys: replicas whose clocks differ by minutes accept each other's requests and names while the keys are
// rotated, one replica before the other, and refuse expired ones.
func TestClocksAndKeys(t *testing.T) {
	key := func(digits ...string) *seal.Keys {
		text := ""
		for _, d := range digits {
			text += strings.Repeat(d, 64) + "\n"
		}
		k, err := seal.Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	// side is a replica with the request that it accepted last.
	type side struct {
		*replica.Member
		keys *seal.Keys
		now  func() time.Time
		got  *http.Request
		as   *replica.Forwarded
		err  error
	}
	for _, skew := range [][2]time.Duration{{0, 2 * time.Minute}, {0, -2 * time.Minute}, {2 * time.Minute, -2 * time.Minute}} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			var late atomic.Int64 // how far the time has advanced
			start := time.Now()
			now := func() time.Time { return start.Add(time.Duration(late.Load())) }
			st := memory.New(memory.Options{Now: now})
			t.Cleanup(func() { st.Close() })
			var both [2]*side
			for i := range both {
				s := &side{keys: key("1"), now: func() time.Time { return now().Add(skew[i]) }}
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					s.got = r.Clone(context.Background())
					if s.as, s.err = s.Accept(r); s.err != nil {
						w.WriteHeader(replica.StatusOf(s.err))
					}
				}))
				t.Cleanup(server.Close)
				var err error
				if s.Member, err = replica.Join(t.Context(), replica.Options{Keys: s.keys, Leases: st, Address: server.URL, Every: time.Hour, Lasts: time.Hour, Now: s.now}); err != nil {
					t.Fatal(err)
				}
				s.Run()
				t.Cleanup(s.Leave)
				both[i] = s
			}
			send := func(from, to *side) error {
				left := time.Hour // of the client's token
				_, err := from.Forward(httptest.NewRecorder(), request(t, "text"), to.ID(), []byte("text"), replica.Caller{Principal: "ann", Expires: from.now().Add(left)})
				if err == nil && !to.as.Caller.Expires.Equal(to.now().Add(left)) {
					t.Errorf("the token ends in %s by the clock of who got the request, want %s", to.as.Caller.Expires.Sub(to.now()), left)
				}
				return err
			}
			session, call := both[0].SealSession([]byte("s")), both[0].SealCall([]byte("c"))
			opens := func(s *side) bool {
				owner, name, ok := s.OpenSession(session)
				of, what, held := s.OpenCall(call)
				return ok && held && owner == both[0].ID() && of == owner && string(name)+string(what) == "sc"
			}
			steps := [][2]*seal.Keys{
				{key("1"), key("1")}, {key("1", "2"), key("1")}, {key("1", "2"), key("1", "2")}, {key("2", "1"), key("1", "2")}, {key("2", "1"), key("2", "1")}, {key("2", "1"), key("2")},
			}
			for n, step := range steps {
				for i, s := range both {
					s.keys.Set(step[i])
				}
				for i, from := range both {
					if err := send(from, both[1-i]); err != nil {
						t.Errorf("%d: %v", i, err)
					}
				}
				if knows := n < len(steps)-1; !opens(both[0]) || opens(both[1]) != knows { // in the last step it has only the new key
					t.Errorf("step %d: the names are known to the other replica: %v", n, !knows)
				}
			}
			both[0].keys.Set(key("2"))
			again := both[1].got // as an attacker on the network could have seen it
			accept := func() error {
				_, err := both[1].Accept(again)
				return err
			}
			if err := accept(); !errors.Is(err, replica.ErrCredential) {
				t.Errorf("a second time: %v", err)
			}
			late.Store(int64(11 * time.Second))
			if err := accept(); !errors.Is(err, replica.ErrLate) {
				t.Errorf("11 seconds later: %v", err)
			}
			if err := send(both[0], both[1]); err != nil {
				t.Errorf("%v", err)
			}
			late.Store(int64(9 * time.Second)) // the clock of the store is known to within the time of a request to it
			if err := accept(); !errors.Is(err, replica.ErrCredential) {
				t.Errorf("a second time, after the clock was set back: %v", err)
			}
		})
	}
}

func TestStreamsComeAtOnce(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	goOn := make(chan struct{})
	a := join(t, st, shared, http.NotFound)
	b := join(t, st, shared, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-goOn:
			case <-r.Context().Done():
				return
			}
		}
	})
	a.run(t)
	b.run(t)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = a.Forward(w, r, b.ID(), nil, replica.Caller{})
	}))
	defer front.Close()
	res, err := http.Get(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) {
			t.Fatalf("got %q", lines.Text())
		}
		goOn <- struct{}{}
	}
	res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

// TestEndOfAReplica: state of a replica that has ended or returned its lease is gone.
func TestEndOfAReplica(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	a := join(t, st, shared, http.NotFound)
	a.run(t)
	forward := func(to string) error {
		t.Helper()
		_, err := a.Forward(httptest.NewRecorder(), request(t, ""), to, nil, replica.Caller{})
		return err
	}
	if err := forward("nobody"); !errors.Is(err, replica.ErrGone) {
		t.Errorf("one that never was: %v", err)
	}
	dead := join(t, st, shared, http.NotFound)
	dead.run(t)
	if err := forward(dead.ID()); err != nil { // it started after the last read of a
		t.Errorf("one that lives: %v", err)
	}
	dead.server.Close()
	if err := forward(dead.ID()); !errors.Is(err, replica.ErrGone) {
		t.Errorf("one that died: %v", err)
	}
	left := join(t, st, shared, http.NotFound)
	left.run(t)()
	until.NoError(t, func() error { // a has read again
		if err := forward(left.ID()); !errors.Is(err, replica.ErrGone) {
			return fmt.Errorf("one that left: %w", err)
		}
		return nil
	})
	if err := st.ReturnLeases(t.Context(), dead.ID()); err != nil {
		t.Fatal(err)
	}
	drains := join(t, st, shared, http.NotFound)
	drains.run(t)
	drains.Drain()
	untilState(t, a, "neighbours", "draining", true)
	if err := forward(drains.ID()); !errors.Is(err, replica.ErrGone) {
		t.Errorf("one that drains: %v", err)
	}
}

// TestAnswerLost: if a replica may have received a request, the error does not say that it did nothing.
func TestAnswerLost(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	a := join(t, st, shared, http.NotFound)
	b := join(t, st, shared, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Param-City") == "" {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler) // the connection ends, as when it is killed
	})
	a.run(t)
	b.run(t)
	for _, begins := range []bool{false, true} {
		r := request(t, "text")
		if begins {
			r.Header.Del("Mcp-Param-City")
		}
		if begun, err := a.Forward(httptest.NewRecorder(), r, b.ID(), []byte("text"), replica.Caller{}); begun != begins || !errors.Is(err, replica.ErrLost) {
			t.Errorf("begun %v: %v", begun, err)
		}
	}
	b.server.Close()
	if _, err := a.Forward(httptest.NewRecorder(), request(t, "text"), b.ID(), []byte("text"), replica.Caller{}); !errors.Is(err, replica.ErrGone) || errors.Is(err, replica.ErrLost) {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestStoreAway: the last known state stays in use while the store is unavailable, and readyz reports that.
func TestStoreAway(t *testing.T) {
	kept := memory.New(memory.Options{})
	t.Cleanup(func() { kept.Close() })
	st := &failing{Leases: kept}
	a := join(t, st, shared, http.NotFound)
	b := join(t, st, shared, func(http.ResponseWriter, *http.Request) {})
	b.Report(func() map[string]int { return map[string]int{"ann": 3} })
	a.run(t)
	b.run(t)
	until.NoError(t, func() error {
		if n := a.Elsewhere("ann"); n != 3 {
			return fmt.Errorf("%d calls of ann elsewhere", n)
		}
		return nil
	})
	if a.Elsewhere("bob") != 0 || b.Elsewhere("ann") != 0 {
		t.Error("calls of others")
	}
	st.away.Store(true)
	untilState(t, a, "store", "unreachable", true)
	if _, err := a.Forward(httptest.NewRecorder(), request(t, ""), b.ID(), nil, replica.Caller{}); err != nil {
		t.Errorf("to one that was known: %v", err)
	}
	if _, err := a.Forward(httptest.NewRecorder(), request(t, ""), "other", nil, replica.Caller{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("to one that was not: %v", err)
	}
	if a.Elsewhere("ann") != 3 || a.NotReady() != "" {
		t.Error("it forgot at once")
	}
	st.away.Store(false)
	untilState(t, a, "store", "unreachable", false)
}

// untilState waits until the reported state of the store or the neighbours contains a word, or no longer contains it.
func untilState(t *testing.T, o *one, of, word string, has bool) {
	t.Helper()
	until.NoError(t, func() error {
		if state := fmt.Sprint(o.State()[of]); strings.Contains(state, word) != has {
			return fmt.Errorf("%s: %s", of, state)
		}
		return nil
	})
}

type failing struct {
	store.Leases
	away atomic.Bool
}

func (f *failing) HoldLeases(ctx context.Context, holder string, leases []store.Lease, lasts time.Duration) ([]store.Lease, time.Time, error) {
	if f.away.Load() {
		return nil, time.Time{}, store.ErrUnavailable
	}
	return f.Leases.HoldLeases(ctx, holder, leases, lasts)
}

func TestNames(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	a := join(t, st, shared, http.NotFound)
	a.run(t)
	session, call := a.SealSession([]byte("s")), a.SealCall([]byte("c"))
	if owner, name, ok := a.OpenSession(session); !ok || owner != a.ID() || string(name) != "s" || len(session) > 200 {
		t.Error(owner, string(name), ok)
	}
	if owner, name, ok := a.OpenCall(call); !ok || owner != a.ID() || string(name) != "c" {
		t.Error(owner, string(name), ok)
	}
	for _, text := range []string{call, "", seal.Random().Seal("session", []byte(a.ID())), shared.Seal("session", []byte("short")), strings.Repeat(session, 3)} {
		if _, _, ok := a.OpenSession(text); ok {
			t.Errorf("%.80s is taken for a session", text)
		}
	}
	if _, _, ok := a.OpenCall(session); ok {
		t.Error("a session is taken for a call")
	}
	for _, address := range []string{"", "10.0.0.7:8080", "ftp://x", "http://", "http://u:p@x", "http://x/mcp", "http://x?y", "http://x#y", "http://x y"} {
		if replica.CheckAddress(address) == nil {
			t.Errorf("%q is taken for an address", address)
		}
	}
}

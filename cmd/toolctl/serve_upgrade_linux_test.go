package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/until"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres"
)

// balancer sends each request to the next ready process. It queries /readyz of all processes once a second, and never
// repeats a request.
type balancer struct {
	*httptest.Server
	done sync.WaitGroup
	next atomic.Int64

	mu    sync.Mutex
	known map[string]bool // whether a process is ready, by its address
	ready []*url.URL
}

func newBalancer(t *testing.T) *balancer {
	b := &balancer{known: map[string]bool{}}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Server = httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1, Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Out.Body = io.NopCloser(bytes.NewReader(body)) // the transport cannot send this body a second time
			b.mu.Lock()
			to := b.ready[int(b.next.Add(1))%len(b.ready)]
			b.mu.Unlock()
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, to.Host
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	b.done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			b.ask(ctx)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	t.Cleanup(func() {
		stop()
		b.done.Wait()
		b.Close()
		transport.CloseIdleConnections()
	})
	return b
}

// ask queries whether the processes are ready.
func (b *balancer) ask(ctx context.Context) {
	b.mu.Lock()
	all := make([]string, 0, len(b.known))
	for at := range b.known {
		all = append(all, at)
	}
	b.mu.Unlock()
	is := make([]bool, len(all))
	var asking sync.WaitGroup
	for i, at := range all {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/readyz", nil)
			if err != nil {
				return
			}
			if res, err := http.DefaultClient.Do(req); err == nil {
				res.Body.Close()
				is[i] = res.StatusCode == http.StatusOK
			}
		})
	}
	asking.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = nil
	for i, at := range all {
		b.known[at] = is[i]
		if to, err := url.Parse(at); err == nil && is[i] {
			b.ready = append(b.ready, to)
		}
	}
}

// add adds a process to the balancer, and returns when that process is ready.
func (b *balancer) add(t *testing.T, p *program) {
	t.Helper()
	at := strings.TrimSuffix(p.url, "/mcp")
	b.mu.Lock()
	b.known[at] = false
	b.mu.Unlock()
	until.NoError(t, func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.known[at] {
			return fmt.Errorf("%s is not ready", at)
		}
		return nil
	})
}

// executed counts at an upstream how often each call ran, by its id.
type executed struct {
	*httptest.Server
	mu sync.Mutex
	of map[string]int
}

// workManifest returns a manifest of a tool that calls an upstream.
func workManifest(upstream string) string {
	return `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: work}
spec:
  description: Work
  input_schema: {type: object, properties: {id: {type: string}}, required: [id]}
  http: {url: "` + upstream + `", method: POST}
`
}

// newExecuted starts the upstream. It responds to most calls after some milliseconds, and to every twentieth after
// more than a second.
func newExecuted(t *testing.T) *executed {
	e := &executed{of: map[string]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var args struct{ ID string }
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		e.mu.Lock()
		e.of[args.ID]++
		n := len(e.of)
		e.mu.Unlock()
		took := 20 * time.Millisecond
		if n%20 == 0 {
			took = 1500 * time.Millisecond
		}
		select {
		case <-time.After(took):
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"did":%q}`, args.ID)
	}))
	t.Cleanup(e.Close)
	return e
}

// upgraded has the responses that the clients saw during an upgrade.
type upgraded struct {
	at                   string
	sent, sessions, ends atomic.Int64
	answered             sync.Map // ids of answered calls
	refused              sync.Map // ids of calls whose session had ended
}

// client makes calls until ctx ends, in sessions unless modern is set. It lets running calls finish.
func (u *upgraded) client(ctx context.Context, t *testing.T, n int, modern bool) {
	w := &bareClient{t: t, token: fmt.Sprint(1 + n%2)}
	if modern {
		w.meta = formsOnly
	}
	var streams sync.WaitGroup
	defer streams.Wait()
	open := func() {
		w.session = ""
		w.open(u.at)
		u.sessions.Add(1)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.at, nil)
		if err != nil {
			t.Error(err)
			return
		}
		for k, v := range map[string]string{"Accept": "text/event-stream", "Authorization": "Bearer " + w.token, "Mcp-Session-Id": w.session, "Mcp-Protocol-Version": "2025-11-25"} {
			r.Header.Set(k, v)
		}
		streams.Go(func() { // clients keep such a stream open; its end does not matter
			if res, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
	if !modern {
		open()
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("%d-%d", n, i)
		u.sent.Add(1)
		status, body := w.post(u.at, "tools/call", "work", `{"name":"work","arguments":{"id":"`+id+`"}}`)
		switch {
		case status == http.StatusOK && strings.Contains(body, id) && !strings.Contains(body, `"isError":true`) && !strings.Contains(body, `"error":`):
			u.answered.Store(id, true)
		case status == http.StatusNotFound && !modern && strings.Contains(body, "session not found"):
			u.ends.Add(1)
			u.refused.Store(id, true)
			open()
		default:
			t.Errorf("call %s (of 2026-07-28: %v) failed: %d %s", id, modern, status, body)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// TestRollingUpgrade replaces three processes one by one, twice, under 64 clients of both versions of the protocol,
// behind a balancer that repeats no request. No call fails, sessions of the older version end as that version
// specifies, and the responses to clients match the calls at the upstream and the audit.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	upstream := newExecuted(t)
	s := launchSharing(t, newDatabase(t), workManifest(upstream.URL), 3, "--allow-private-network", "--shutdown-delay", replicaShutdownDelay.String(), "--drain-timeout", "10s")
	b := newBalancer(t)
	for _, p := range s.all {
		b.add(t, p)
	}
	u := &upgraded{at: b.URL + "/mcp"}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	for n := range 64 {
		clients.Go(func() { u.client(ctx, t, n, n%4 < 2) })
	}
	for round := range 2 {
		for i, old := range s.all {
			s.all[i] = launchServe(t, again(t, "toolctl"), s.args...)
			b.add(t, s.all[i])
			began := time.Now()
			if err := old.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := old.Wait(); err != nil {
				t.Error(err)
			}
			t.Logf("round %d: process %d stopped in %s", round, i, time.Since(began).Round(time.Millisecond))
		}
	}
	stop()
	clients.Wait()
	for _, p := range s.all {
		_ = p.Process.Signal(os.Interrupt) // SIGTERM would take longer
	}
	for _, p := range s.all {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	lines := audited(t, s.dsn)
	answered := 0
	u.answered.Range(func(id, _ any) bool {
		answered++
		if n, lines := upstream.of[id.(string)], lines[id.(string)]; n != 1 || lines != v1.StatusStarted+" "+v1.StatusComplete {
			t.Errorf("call %s was answered, carried out %d times, and audited as %q", id, n, lines)
		}
		return true
	})
	u.refused.Range(func(id, _ any) bool {
		if n, lines := upstream.of[id.(string)], lines[id.(string)]; n != 0 || lines != "" {
			t.Errorf("call %s got the end of its session, was carried out %d times, and audited as %q", id, n, lines)
		}
		return true
	})
	t.Logf("%d calls sent, %d answered, %d got the end of their session and began %d; %d carried out, %d audited",
		u.sent.Load(), answered, u.ends.Load(), u.sessions.Load(), len(upstream.of), len(lines))
	if answered == 0 || answered+int(u.ends.Load()) != int(u.sent.Load()) || len(upstream.of) != answered || len(lines) != answered {
		t.Error("the counts differ")
	}
}

// audited returns the statuses of each call, by its id.
func audited(t *testing.T, dsn string) map[string]string {
	t.Helper()
	st, err := postgres.Open(context.Background(), dsn, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	all, ids := map[string]string{}, map[string]string{}
	err = st.EachAudit(context.Background(), store.AuditFilter{Tool: "work"}, func(l store.AuditLine) error {
		r, err := l.Record()
		if err != nil {
			return err
		}
		if len(r.Args) > 0 {
			var args struct{ ID string }
			if err := json.Unmarshal(r.Args, &args); err != nil {
				return err
			}
			ids[r.CallID] = args.ID
		}
		if id, known := ids[r.CallID]; known { // skip the records of the apply of the manifest
			all[id] = strings.TrimSpace(all[id] + " " + r.Status)
			if r.Late {
				all[id] += " late"
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

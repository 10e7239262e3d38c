package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	v1 "toolctl.dev/toolctl/api/v1"
)

// auditedStore returns a store with the tool "order", which calls upstream.
func auditedStore(t *testing.T, upstream http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(upstream)
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	file, store := filepath.Join(dir, "order.yaml"), filepath.Join(dir, "state.db")
	writeFile(t, file, `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: order}
spec:
  description: Order
  input_schema: {type: object}
  http: {method: POST, url: `+srv.URL+`}
`)
	runQuiet(t, "apply", "-f", file, "--store", store)
	return store
}

// auditOf returns the output of 'audit list --all -o json'.
func auditOf(t *testing.T, store string) []auditLine {
	t.Helper()
	var out, stderr bytes.Buffer
	if code := run(t.Context(), []string{"audit", "list", "--all", "-o", "json", "--store", store}, nil, &out, &stderr); code != exitOK {
		t.Fatalf("exit %d: %s", code, &stderr)
	}
	var list struct{ Items []auditLine }
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func readyz(t *testing.T, p *program) (code int, text string) {
	t.Helper()
	res, err := http.Get(strings.TrimSuffix(p.url, "/mcp") + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// fileLimit sets the maximum size of files that a process may write.
func fileLimit(t *testing.T, p *program, bytes uint64) {
	t.Helper()
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(p.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatal(err)
	}
}

// callAll makes calls from 16 clients and returns the number of successful calls.
func callAll(t *testing.T, p *program, each int) int64 {
	t.Helper()
	var done atomic.Int64
	var clients sync.WaitGroup
	for range 16 {
		cs := connect(t, p.url, "2025-11-25")
		clients.Go(func() {
			for range each {
				res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "order", Arguments: map[string]any{"text": strings.Repeat("x", 1000)}})
				switch {
				case err != nil:
					t.Error(err)
				case !res.IsError:
					done.Add(1)
				case !strings.Contains(textOf(res), "refused, because the audit log cannot be written"):
					t.Errorf("refused for another reason: %s", textOf(res))
				}
			}
		})
	}
	clients.Wait()
	return done.Load()
}

// TestServeAuditFull checks that no call runs without a line in the audit: while the disk is full, calls are refused,
// /readyz reports it, and the audit later names the missing lines.
func TestServeAuditFull(t *testing.T) {
	t.Parallel()
	var orders atomic.Int64
	store := auditedStore(t, func(w http.ResponseWriter, _ *http.Request) {
		orders.Add(1)
		io.WriteString(w, "{}")
	})
	s := launchServe(t, again(t, "toolctl"), "--store", store, "--allow-private-network")
	if code, text := readyz(t, s); code != http.StatusOK {
		t.Fatalf("/readyz at the start: %d %s", code, text)
	}
	readyz(t, s) // serve listens before it opens the store
	wal, err := os.Stat(store + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	fileLimit(t, s, uint64(wal.Size())+100<<10) // enough for some calls
	ok := callAll(t, s, 10)
	if ok == 0 || ok == 160 {
		t.Fatalf("%d calls of 160 succeeded", ok)
	}
	if code, text := readyz(t, s); code != http.StatusServiceUnavailable || !strings.Contains(text, `"reason":"the audit cannot be written: `) || strings.Contains(text, store) {
		t.Errorf("/readyz: %d %s", code, text)
	}
	ran := orders.Load()
	if got := callAll(t, s, 2); got != 0 || orders.Load() != ran {
		t.Errorf("%d calls succeeded and %d ran while the disk was full", got, orders.Load()-ran)
	}
	fileLimit(t, s, unix.RLIM_INFINITY)
	for deadline := time.Now().Add(20 * time.Second); ; { // even without a call
		if code, _ := readyz(t, s); code == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("/readyz stays at 503")
		}
		<-time.After(50 * time.Millisecond)
	}
	if got := callAll(t, s, 1); got != 16 {
		t.Errorf("%d calls of 16 succeeded at the end", got)
	}
	runQuiet(t, "audit", "verify", "--store", store)
	count := map[string]int64{}
	var missing int64
	for _, l := range auditOf(t, store) {
		count[l.Status]++
		if l.Gap != nil {
			missing += l.Gap.Lines
		}
	}
	if count[v1.StatusStarted] != orders.Load() || count[v1.StatusGap] == 0 || count[v1.StatusComplete] > orders.Load() {
		t.Errorf("%d calls ran; the audit has %v", orders.Load(), count)
	}
	// One line is missing for each refused call, and for each call whose outcome could not be written.
	if want := 192 - ok + count[v1.StatusStarted] - 16 - count[v1.StatusComplete] + 16; missing != want {
		t.Errorf("the gaps have %d lines; want %d of %v, %d succeeded", missing, want, count, ok)
	}
}

// TestServeAuditBestEffort checks that a best-effort server continues without the audit, and reports what it continues
// without.
func TestServeAuditBestEffort(t *testing.T) {
	var orders atomic.Int64
	store := auditedStore(t, func(w http.ResponseWriter, _ *http.Request) {
		orders.Add(1)
		io.WriteString(w, "{}")
	})
	s := launchServe(t, again(t, "toolctl"), "--store", store, "--allow-private-network", "--audit", "best-effort")
	readyz(t, s) // serve listens before it opens the store
	fileLimit(t, s, 1)
	if got := callAll(t, s, 2); got != 32 || orders.Load() != 32 {
		t.Errorf("%d calls succeeded and %d ran; want 32", got, orders.Load())
	}
	if code, text := readyz(t, s); code != http.StatusOK || !strings.Contains(text, `"warning":"the audit cannot be written`) {
		t.Errorf("/readyz: %d %s", code, text)
	}
	fileLimit(t, s, unix.RLIM_INFINITY)
	if got := callAll(t, s, 1); got != 16 {
		t.Error(got)
	}
	var missing int64
	for _, l := range auditOf(t, store) {
		if l.Gap != nil {
			missing += l.Gap.Lines
		}
	}
	if missing != 64 {
		t.Errorf("the gaps have %d lines; want 64", missing)
	}
}

// TestServeAuditKilled checks that a call that kill -9 interrupts has a line.
func TestServeAuditKilled(t *testing.T) {
	arrived, end := make(chan struct{}), make(chan struct{})
	store := auditedStore(t, func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-end
	})
	t.Cleanup(func() { close(end) })
	s := launchServe(t, again(t, "toolctl"), "--store", store, "--allow-private-network")
	cs := connect(t, s.url, "2025-11-25")
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "order"}) // the call gets no response
	}()
	<-arrived
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-gone
	runQuiet(t, "audit", "verify", "--store", store)
	for _, args := range [][]string{{"--status", "started"}, {"--all"}} {
		var out, stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"audit", "list", "--store", store}, args...), nil, &out, &stderr); code != exitOK {
			t.Fatalf("exit %d: %s", code, &stderr)
		}
		if text := out.String(); strings.Count(text, " -          started, outcome unknown") != 1 {
			t.Errorf("%q: %s", args, text)
		}
	}
}

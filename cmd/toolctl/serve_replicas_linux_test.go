package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/store/postgres/pgtest"
)

const replicaTools = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: count}
spec: {description: %s, input_schema: {type: object}, mock_result: {said: %[1]s}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pay, input_schema: {type: object}, mock_result: {paid: true}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec:
  limits:
  - {tools: [count], max_calls: 500, per: session}
  - {tools: [count], max_calls: 500, per: day, by: principal}
  - {tools: [count], max_calls: 500, per: day, by: all}
  require_approval: [pay]
`

// replicas are several serve processes with one store.
type replicas struct {
	dsn, dir string
	all      []*program
	next     atomic.Int64
}

func launchReplicas(t *testing.T, dsn string, n int) *replicas {
	t.Helper()
	if raceDetector {
		t.Skip("three gateways are ten times slower under the race detector; the store's own tests run under it")
	}
	r := &replicas{dsn: dsn, dir: t.TempDir()}
	tokens := filepath.Join(r.dir, "tokens")
	writeFile(t, tokens, tokenLine("ann", "1"))
	r.apply(t, "first")
	for range n {
		r.all = append(r.all, launchServe(t, again(t, "toolctl"), "--store", dsn, "--watch", "--token-file", tokens))
	}
	return r
}

func (r *replicas) apply(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(r.dir, "tools.yaml")
	writeFile(t, file, fmt.Sprintf(replicaTools, text))
	toolctl(t, exitOK, "apply", "-f", file, "--set", "main", "--store", r.dsn)
}

// call makes a call at the next replica, like a client of 2026-07-28 behind a proxy.
func (r *replicas) call(ctx context.Context, tool string) (status int, body string, err error) {
	return callAt(ctx, r.all[int(r.next.Add(1))%len(r.all)].url, tool)
}

func callAt(ctx context.Context, url, tool string) (status int, body string, err error) {
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"toolctl.dev/session":"s",`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer 1",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return res.StatusCode, string(raw), err
}

// TestReplicas checks that all replicas give a client the same view.
func TestReplicas(t *testing.T) {
	t.Parallel()
	r := launchReplicas(t, newDatabase(t), 3)
	t.Run("a manifest that is changed is served by all", func(t *testing.T) {
		r.apply(t, "second")
		began := time.Now()
		for _, p := range r.all {
			for seen := false; !seen; {
				_, body, err := callAt(t.Context(), p.url, "count")
				if err != nil {
					t.Fatal(err)
				}
				seen = strings.Contains(body, "second")
			}
		}
		t.Logf("served by all after %s", time.Since(began))
	})
	t.Run("an approval given at one place lets the call at another through", func(t *testing.T) {
		_, body, err := callAt(t.Context(), r.all[0].url, "pay")
		id := pendingCallID.FindStringSubmatch(body)
		if err != nil || id == nil {
			t.Fatal(body, err)
		}
		toolctl(t, exitOK, "approvals", "approve", id[1], "--as", "eve", "--store", r.dsn)
		began := time.Now()
		if _, body, err := callAt(t.Context(), r.all[1].url, "pay"); err != nil || !strings.Contains(body, `"paid":true`) {
			t.Errorf("at another replica: %s, %v", body, err)
		}
		t.Logf("the call took %s", time.Since(began))
		if _, body, err := callAt(t.Context(), r.all[2].url, "pay"); err != nil || strings.Contains(body, `"paid":true`) {
			t.Errorf("an approval was used twice: %s, %v", body, err)
		}
	})
}

// callMany makes calls from 64 clients at all replicas in turn until they are refused. It returns the number of
// answered calls, and of calls without a response or with an error about the store.
func (r *replicas) callMany(t *testing.T, each int, after func(done int64)) (answered, lost int64) {
	t.Helper()
	var ok, failed, done atomic.Int64
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			for range each {
				status, body, err := r.call(t.Context(), "count")
				switch {
				case err != nil, status == http.StatusServiceUnavailable:
					failed.Add(1)
				case strings.Contains(body, `"said":"first"`):
					ok.Add(1)
				case !strings.Contains(body, "of 500 calls"):
					t.Errorf("%d %s", status, body)
				}
				after(done.Add(1))
			}
		})
	}
	clients.Wait()
	return ok.Load(), failed.Load()
}

// TestReplicasCountExactly checks limits by session, by principal and for all calls across all replicas.
func TestReplicasCountExactly(t *testing.T) {
	t.Parallel()
	r := launchReplicas(t, newDatabase(t), 3)
	if answered, lost := r.callMany(t, 10, func(int64) {}); answered != 500 || lost > 0 {
		t.Errorf("%d calls were made and %d lost, want 500 and none", answered, lost)
	}
	runQuiet(t, "audit", "verify", "--store", r.dsn)
}

// TestReplicasKilled checks that a limit is never exceeded although a replica and database connections are killed, and
// that at most the running calls are lost.
func TestReplicasKilled(t *testing.T) {
	t.Parallel()
	server := ownDatabase(t)
	dsn, err := server.NewStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := launchReplicas(t, dsn, 3)
	answered, lost := r.callMany(t, 14, func(done int64) {
		switch {
		case done == 200:
			_ = r.all[0].Process.Kill()
		case done%100 == 50:
			if err := server.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'toolctl'"); err != nil {
				t.Error(err)
			}
		}
	})
	t.Logf("%d calls were answered, %d not", answered, lost)
	if answered > 500 || answered < 500-3*64 {
		t.Errorf("%d calls were answered of 500", answered)
	}
	runQuiet(t, "audit", "verify", "--store", r.dsn)
}

// ownDatabase starts a server that a test may stop, and whose connections it may end.
func ownDatabase(t *testing.T) *pgtest.Server {
	t.Helper()
	if _, err := startDatabase(); errors.Is(err, pgtest.ErrNotInstalled) {
		t.Skip(err)
	}
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// TestServeDatabaseAway checks that while the database is unavailable, calls are refused with its name and /readyz
// reports it. Afterwards calls continue, and no call ran without being counted.
func TestServeDatabaseAway(t *testing.T) {
	t.Parallel()
	server := ownDatabase(t)
	dsn, err := server.NewStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := launchReplicas(t, dsn, 1)
	at := r.all[0].url
	if status, body, err := callAt(t.Context(), at, "count"); status != http.StatusOK || err != nil {
		t.Fatal(status, body, err)
	}
	server.Stop(syscall.SIGQUIT)
	for range 3 {
		status, body, err := callAt(t.Context(), at, "count")
		if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(body, "postgres:///") || !strings.Contains(body, "cannot be reached") || strings.Contains(body, "said") {
			t.Errorf("while it is away: %d %s %v", status, body, err)
		}
	}
	var out, stderr bytes.Buffer
	if code := run(t.Context(), []string{"call", "count", "--store", dsn}, nil, &out, &stderr); code != exitUnavailable || !strings.Contains(stderr.String(), "postgres:///") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if status, body, err := callAt(t.Context(), at, "count"); status != http.StatusOK || err != nil || !strings.Contains(body, `"used":2`) {
		t.Errorf("when it is back: %d %s %v", status, body, err)
	}
	t.Logf("back after %s", time.Since(began))
	runQuiet(t, "audit", "verify", "--store", dsn)
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// TestDatabaseFrozen checks that /readyz detects a frozen database within the time of a lease, with or without
// replicas, that calls are refused long before their deadline, and that everything continues when the database does.
func TestDatabaseFrozen(t *testing.T) {
	t.Parallel()
	server := ownDatabase(t)
	dsn, err := server.NewStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := launchReplicas(t, dsn, 1)
	key := filepath.Join(r.dir, "key")
	writeFile(t, key, replicaKey)
	for range 2 {
		r.all = append(r.all, launchServe(t, again(t, "toolctl"), "--store", dsn, "--token-file", filepath.Join(r.dir, "tokens"),
			"--replica-key-file", key, "--shutdown-delay", "0s", "--drain-timeout", "1s"))
	}
	for _, p := range r.all {
		if status, body, err := callAt(t.Context(), p.url, "count"); status != http.StatusOK || err != nil {
			t.Fatal(status, body, err)
		}
	}
	thaw, err := server.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	frozen := true
	defer func() {
		if frozen {
			_ = thaw()
		}
	}()
	began := time.Now()
	for i, p := range r.all {
		untilState(t, p, "it is not ready", func(r readyState) bool { return !r.Ready })
		if took := time.Since(began); took > 10*time.Second { // it used to take 20 to 30 seconds
			t.Fatalf("process %d is ready %s after the database stood still", i, took)
		}
		t.Logf("process %d is not ready after %s", i, time.Since(began).Round(time.Millisecond))
	}
	for i, p := range r.all {
		began := time.Now()
		status, body, err := callAt(t.Context(), p.url, "count")
		took := time.Since(began).Round(time.Millisecond)
		if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(body, "postgres:///") || strings.Contains(body, "said") {
			t.Errorf("process %d: %d %s %v", i, status, body, err)
		}
		if took > v1.DefaultTimeoutMS*time.Millisecond*2/3 {
			t.Errorf("process %d: the call took %s", i, took)
		}
		t.Logf("process %d refused a call after %s", i, took)
	}
	began = time.Now()
	last := r.all[len(r.all)-1]
	if err := last.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := last.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("meanwhile a replica stopped in %s", time.Since(began).Round(time.Millisecond))
	frozen = false
	if err := thaw(); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	for _, p := range r.all[:2] {
		untilReady(t, p)
		if status, body, err := callAt(t.Context(), p.url, "count"); status != http.StatusOK || err != nil {
			t.Error(status, body, err)
		}
	}
	t.Logf("ready again %s after the database went on", time.Since(began).Round(time.Millisecond))
	runQuiet(t, "audit", "verify", "--store", dsn)
}

// TestOutcomesWhileDatabaseAway checks that calls that end while the database is unavailable get a response, and that
// the audit later has their outcomes, marked as late.
func TestOutcomesWhileDatabaseAway(t *testing.T) {
	t.Parallel()
	server := ownDatabase(t)
	dsn, err := server.NewStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const calls = 18
	began, release := make(chan struct{}, calls), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		began <- struct{}{}
		<-release
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"did":true}`)
	}))
	defer upstream.Close()
	s := launchSharing(t, dsn, workManifest(upstream.URL), 1, "--allow-private-network")
	at := s.all[0]
	answers := make(chan string, calls)
	for i := range calls {
		go func() {
			w := &bareClient{t: t, token: "1", meta: formsOnly}
			status, body := w.post(at.url, "tools/call", "work", fmt.Sprintf(`{"name":"work","arguments":{"id":"%d"}}`, i))
			answers <- fmt.Sprint(status, body)
		}()
	}
	for range calls {
		<-began
	}
	server.Stop(syscall.SIGQUIT)
	close(release)
	for range calls {
		if text := <-answers; !strings.HasPrefix(text, "200") || !strings.Contains(text, `"did":true`) {
			t.Errorf("a call that was carried out: %s", text)
		}
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	untilReady(t, at)
	audited := audited(t, dsn)
	for i := range calls {
		if lines := audited[fmt.Sprint(i)]; lines != v1.StatusStarted+" "+v1.StatusComplete+" late" {
			t.Errorf("call %d was audited as %q", i, lines)
		}
	}
	runQuiet(t, "audit", "verify", "--store", dsn)
}

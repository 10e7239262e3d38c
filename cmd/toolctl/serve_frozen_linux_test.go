package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// TestDatabaseFrozen: a database that stands still is found out by /readyz within the time of a lease, be there
// replicas or not, calls are refused long before they had to end, and all goes on when the database does.
func TestDatabaseFrozen(t *testing.T) {
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
		for readyOf(t, p).Ready {
			if time.Since(began) > 10*time.Second { // it was 20 to 30
				t.Fatalf("process %d is ready %s after the database stood still", i, time.Since(began))
			}
			time.Sleep(10 * time.Millisecond)
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
		for !readyOf(t, p).Ready {
			if time.Since(began) > time.Minute {
				t.Fatal("it does not get ready again")
			}
			time.Sleep(10 * time.Millisecond)
		}
		if status, body, err := callAt(t.Context(), p.url, "count"); status != http.StatusOK || err != nil {
			t.Error(status, body, err)
		}
	}
	t.Logf("ready again %s after the database went on", time.Since(began).Round(time.Millisecond))
	runQuiet(t, "audit", "verify", "--store", dsn)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/store/auditlog"
)

// TestAuditAnchor checks that an HTTP address receives each head once, and that no output shows its password.
func TestAuditAnchor(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	status := http.StatusNoContent
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		got <- user + ":" + password + " " + r.Method + " " + string(body)
		w.WriteHeader(status)
	}))
	t.Cleanup(at.Close)
	dir := t.TempDir()
	db := filepath.Join(dir, "state.db")
	writeFile(t, filepath.Join(dir, "tools.yaml"), fmt.Sprintf(mockTool, "one"))
	toolctl(t, exitOK, "apply", "-f", filepath.Join(dir, "tools.yaml"), "--store", db)
	to := strings.Replace(at.URL, "http://", "http://ann:s3cret@", 1) + "/heads"

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var out, stderr bytes.Buffer
	go func() {
		ended <- run(ctx, []string{"audit", "anchor", "--to", to, "--interval", "1s", "--store", db}, nil, &out, &stderr)
	}()
	var heads []auditlog.Head
	for i := range 2 {
		_, line, ok := strings.Cut(<-got, "ann:s3cret POST ")
		var a auditlog.Head
		if err := json.Unmarshal([]byte(line), &a); !ok || err != nil || len(a.Head) != 64 || a.Time.IsZero() {
			t.Fatalf("got %q, %v", line, err)
		}
		if heads = append(heads, a); i == 0 {
			toolctl(t, exitOK, "delete", "tool", "one", "--store", db)
		}
	}
	stop()
	if code := <-ended; code != exitOK || heads[0].Head == heads[1].Head || heads[1].Lines != 2 {
		t.Errorf("exit code %d: %s; heads %+v", code, &stderr, heads)
	}
	for _, h := range heads {
		toolctl(t, exitOK, "audit", "verify", "--head", h.Head, "--store", db)
	}
	if strings.Contains(out.String()+stderr.String(), "s3cret") {
		t.Errorf("a password is shown: %s%s", &out, &stderr)
	}
	status = http.StatusForbidden
	for to, want := range map[string]int{to: exitFailed, "http://ann:s3cret@127.0.0.1:1/": exitUnavailable, "ftp://ann:s3cret@h/": exitUsage} {
		out.Reset()
		stderr.Reset()
		if code := run(t.Context(), []string{"audit", "anchor", "--to", to, "--store", db}, nil, &out, &stderr); code != want || strings.Contains(stderr.String(), "s3cret") {
			t.Errorf("%s: exit code %d, want %d: %s", to, code, want, &stderr)
		}
	}
}

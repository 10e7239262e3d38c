//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/until"
	"toolctl.dev/toolctl/pkg/store"
)

// behindPooler starts PgBouncer in transaction mode in front of a server, and returns the address of a store through it.
func behindPooler(t *testing.T) string {
	t.Helper()
	path := os.Getenv("TOOLCTL_PGBOUNCER")
	if path == "" {
		t.Skip("TOOLCTL_PGBOUNCER is not set: run .ci/pgbouncer and set it to the program that it prints")
	}
	srv, _ := own(t)
	dir, port := filepath.Dir(srv.Socket()), freePort(t)
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\npostgres = host=%s port=5432 user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\n", dir, port)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(path, config)
	if as := srv.Command(path).SysProcAttr; as != nil { // root: it changes to another user by itself
		u, err := user.LookupId(fmt.Sprint(as.Credential.Uid))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args = append(cmd.Args, "-u", u.Username)
	}
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("pgbouncer: %s", &log)
		}
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	until.NoError(t, func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return "postgres://postgres@" + address + "/postgres?sslmode=disable&default_query_exec_mode=exec"
}

// TestPooler: through a pooler that gives each transaction another connection the whole store works, and changes are
// seen although LISTEN has no effect.
func TestPooler(t *testing.T) {
	dsn := behindPooler(t)
	var stores [3]store.Store
	var all sync.WaitGroup
	for i := range stores { // one of these creates the tables
		all.Go(func() { stores[i] = open(t, dsn, store.Options{WatchInterval: 100 * time.Millisecond}) })
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := make(chan string, 10)
	all.Go(func() {
		for e, err := range stores[0].Watch(ctx, 0) {
			if err != nil {
				seen <- err.Error()
				return
			}
			if seen <- e.Record.Key().Name; e.Record.Key().Name == "b" {
				return
			}
		}
	})
	for _, name := range []string{"a", "b"} {
		apply(t, stores[1], name)
		if got := <-seen; got != name {
			t.Errorf("the watch saw %s, want %s", got, name)
		}
	}
	all.Wait()
	c := []v1.Counter{{Key: "a", Limit: 50}, {Key: "b", Limit: -1}}
	granted := make(chan bool, 3*40)
	for _, st := range stores {
		for range 40 {
			all.Go(func() {
				_, full, err := st.Reserve(ctx, c)
				if err != nil {
					t.Error(err)
				}
				granted <- full < 0
				if err := st.AppendAudit(ctx, v1.AuditRecord{Tool: "t"}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	close(granted)
	n := 0
	for ok := range granted {
		if ok {
			n++
		}
	}
	if check, err := stores[2].VerifyAudit(ctx, ""); n != 50 || err != nil || check.Broken != nil || check.Lines < 3*40 {
		t.Errorf("%d were granted of 50; the audit: %+v, %v", n, check, err)
	}
	for i, st := range stores {
		held, _, err := st.HoldLeases(ctx, fmt.Sprint("holder ", i), []store.Lease{{Name: "one"}}, time.Minute)
		if err != nil || len(held) != 1 || held[0].Holder != "holder 0" {
			t.Errorf("%v, %v", held, err)
		}
	}
}

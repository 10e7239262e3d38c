package postgres_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres"
)

func TestOpen(t *testing.T) {
	dsn := newStore(t)
	if _, err := postgres.Open(t.Context(), dsn, store.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a store that is not there: %v", err)
	}
	// Processes that create it concurrently wait for each other.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			st, err := postgres.Open(t.Context(), dsn, store.Options{Create: true})
			if err != nil {
				t.Error(err)
				return
			}
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	st := open(t, dsn, store.Options{})
	if at, err := st.Revision(t.Context()); at != 0 || err != nil {
		t.Errorf("revision %d, %v", at, err)
	}
	schema := dsn[strings.Index(dsn, "search_path=")+len("search_path="):]
	schema, _, _ = strings.Cut(schema, "&")
	if err := server(t).Exec(t.Context(), "INSERT INTO "+schema+".toolctl_migrations (version_id, is_applied) VALUES (999, true)"); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(t.Context(), dsn, store.Options{Create: true}); !errors.Is(err, store.ErrNewer) || !strings.Contains(fmt.Sprint(err), "version 999") {
		t.Errorf("a newer store: %v", err)
	}
}

// TestOpenShowsNoPassword: no error message contains the password.
func TestOpenShowsNoPassword(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://ann:s3cret@127.0.0.1:1/db":                                 "cannot be reached",
		"postgres://ann:s3cret@127.0.0.1:1,127.0.0.1:2/db?sslmode=disable":     `store "postgres://127.0.0.1:1,127.0.0.1:2/db"`,
		"postgres://ann:s3cret@127.0.0.1:port/db":                              "cannot be read",
		"postgres://ann:s3cret@127.0.0.1:1/db?sslmode=s3cret":                  "cannot be read",
		"postgres://127.0.0.1:1/db?user=ann&password=s3cret&connect_timeout=x": "cannot be read",
		"postgres://ann:s3cr%et@127.0.0.1:1/db":                                "cannot be read",
		"postgres://ann:s3cret@127.0.0.1:1/db?pool_max_conns=s3cret":           "cannot be read",
	} {
		_, err := postgres.Open(t.Context(), dsn, store.Options{})
		text := fmt.Sprint(err)
		if err == nil || strings.Contains(text, "s3cr") || !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %q", dsn, text, want)
		}
		if strings.Contains(want, "cannot be reached") && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v is not %v", dsn, err, store.ErrUnavailable)
		}
	}
}

package postgres_test

import (
	"context"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

// TestNotify: a change by another process is noticed long before the next poll, also after the listening connection was
// ended.
func TestNotify(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dsn := newStore(t)
	watcher, writer := open(t, dsn, store.Options{WatchInterval: time.Hour}), open(t, dsn, store.Options{})
	apply(t, writer, tools[0])
	seen := 0
	for e, err := range watcher.Watch(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if name := e.Record.Key().Name; name != tools[seen] {
			t.Fatalf("event %d is of %s", seen, name)
		}
		if seen++; seen == len(tools) {
			break
		}
		if seen == 2 {
			err := server(t).Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
			if err != nil {
				t.Fatal(err)
			}
		}
		apply(t, writer, tools[seen])
	}
	if seen != len(tools) {
		t.Errorf("%d events", seen)
	}
}

var tools = []string{"a", "b", "c", "d"}

func apply(t *testing.T, st store.Store, name string) {
	t.Helper()
	if _, err := st.Apply(t.Context(), []v1.Object{storetest.Tool(name, "x")}, store.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
}

package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

func line(e store.Event) string {
	return fmt.Sprintf("%d %s %s %s", e.Record.ResourceVersion, e.Type, e.Record.Key().Name, e.Record.Object.Head().Metadata.Labels["mark"])
}

// watch reads n events in a goroutine of its own.
func watch(ctx context.Context, st *sqlite.Store, from int64, n int) <-chan []string {
	done := make(chan []string, 1)
	go func() {
		var got []string
		for e, err := range st.Watch(ctx, from) {
			if err != nil {
				got = append(got, err.Error())
				break
			}
			if got = append(got, line(e)); len(got) == n {
				break
			}
		}
		done <- got
	}()
	return done
}

func TestWatch(t *testing.T) {
	path := filled(t, 2)
	for _, tc := range []struct {
		name     string
		interval time.Duration
		same     bool
	}{
		{"another handle, as another process has it", time.Millisecond, false},
		{"the same handle, long before the next look", time.Hour, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			watcher := openWith(t, path, store.Options{WatchInterval: tc.interval})
			writer := watcher
			if !tc.same {
				writer = open(t, path)
			}
			list := mustList(t, watcher, store.ListOptions{})
			at := list.ResourceVersion
			name := fmt.Sprintf("new-%d", at)
			done := watch(ctx, watcher, at, 4)
			mustApply(t, writer, []v1.Object{tool(name, "a")}, store.ApplyOptions{})
			// Counters, audit lines and applies that change nothing are no events.
			mustApply(t, writer, []v1.Object{tool(name, "a")}, store.ApplyOptions{})
			if _, _, err := writer.Reserve(ctx, []v1.Counter{{Key: "k", Limit: -1}}); err != nil {
				t.Fatal(err)
			}
			mustApply(t, writer, []v1.Object{tool(name, "b"), tool("tool-0000", fmt.Sprint(at))}, store.ApplyOptions{})
			if _, err := writer.Delete(ctx, []v1.Key{keyOf(v1.KindTool, name)}, store.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			want := []string{
				fmt.Sprintf("%d ADDED %s a", at+1, name), fmt.Sprintf("%d MODIFIED %s b", at+2, name),
				fmt.Sprintf("%d MODIFIED tool-0000 %d", at+3, at), fmt.Sprintf("%d DELETED %s b", at+4, name),
			}
			if got := <-done; !slices.Equal(got, want) {
				t.Errorf("got %q\nwant %q", got, want)
			}
			// A later watch goes on in the middle.
			if got := <-watch(ctx, writer, at+2, 2); !slices.Equal(got, want[2:]) {
				t.Errorf("from the middle: got %q, want %q", got, want[2:])
			}
		})
	}
}

func TestWatchManyChangesAtOnce(t *testing.T) {
	st := create(t, filepath.Join(t.TempDir(), "state.db"))
	mustApply(t, st, tools(1000, "a"), store.ApplyOptions{})
	got := <-watch(t.Context(), st, 0, 1000)
	for i, l := range got {
		if want := fmt.Sprintf("%d ADDED tool-%04d a", i+1, i); l != want {
			t.Fatalf("event %d is %q, want %q", i, l, want)
		}
	}
}

func TestWatchEnds(t *testing.T) {
	st := openWith(t, filepath.Join(t.TempDir(), "state.db"), store.Options{Create: true, KeepChanges: 3})
	mustApply(t, st, tools(5, "a"), store.ApplyOptions{})

	t.Run("too old", func(t *testing.T) {
		for from, want := range map[int64]string{
			0: "the changes after 0 are no longer kept: list again", 1: "no longer kept", 9: "9 was asked for, but the store is at 5 only",
		} {
			n := 0
			for _, err := range st.Watch(t.Context(), from) {
				n++
				if !errors.Is(err, store.ErrTooOld) || !strings.Contains(err.Error(), want) {
					t.Errorf("from %d: %v", from, err)
				}
			}
			if n != 1 {
				t.Errorf("from %d: %d events", from, n)
			}
		}
		if got, want := <-watch(t.Context(), st, 2, 3), []string{"3 ADDED tool-0002 a", "4 ADDED tool-0003 a", "5 ADDED tool-0004 a"}; !slices.Equal(got, want) {
			t.Errorf("from 2: got %q, want %q", got, want)
		}
	})
	t.Run("the log stays bounded", func(t *testing.T) {
		for i := range 10 {
			mustApply(t, st, tools(2, fmt.Sprint(i)), store.ApplyOptions{})
		}
		var kept int
		if err := st.DB().QueryRow("SELECT count(*) FROM changes").Scan(&kept); err != nil || kept != 3 {
			t.Errorf("%d changes are kept, %v: want 3", kept, err)
		}
	})
	t.Run("end of the context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		at, err := st.Revision(ctx)
		if err != nil {
			t.Fatal(err)
		}
		done := watch(ctx, st, at, -1)
		cancel()
		if got := <-done; len(got) != 0 {
			t.Errorf("%q, want nothing", got)
		}
	})
	t.Run("close", func(t *testing.T) {
		at, err := st.Revision(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done := watch(t.Context(), st, at, -1)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if got := <-done; !slices.Equal(got, []string{store.ErrClosed.Error()}) {
			t.Errorf("%q", got)
		}
	})
}

package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

func line(e store.Event) string {
	return fmt.Sprintf("%d %s %s %s", e.Record.ResourceVersion, e.Type, e.Record.Key().Name, e.Record.Object.Head().Metadata.Labels["mark"])
}

// watch reads n events in a goroutine.
func watch(ctx context.Context, st store.Store, from int64, n int) <-chan []string {
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

func testWatch(t *testing.T, backend Backend) {
	disk := backend.New(t)
	mustApply(t, open(t, disk), Tools(2, "a"), store.ApplyOptions{})
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
			watcher := openWith(t, disk, store.Options{WatchInterval: tc.interval})
			writer := watcher
			if !tc.same {
				writer = open(t, disk)
			}
			list := mustList(t, watcher, store.ListOptions{})
			at := list.ResourceVersion
			name := fmt.Sprintf("new-%d", at)
			done := watch(ctx, watcher, at, 4)
			mustApply(t, writer, []v1.Object{Tool(name, "a")}, store.ApplyOptions{})
			// Counters, audit records and applies without changes cause no events.
			mustApply(t, writer, []v1.Object{Tool(name, "a")}, store.ApplyOptions{})
			if _, _, err := writer.Reserve(ctx, []v1.Counter{{Key: "k", Limit: -1}}); err != nil {
				t.Fatal(err)
			}
			mustApply(t, writer, []v1.Object{Tool(name, "b"), Tool("tool-0000", fmt.Sprint(at))}, store.ApplyOptions{})
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
			// A later watch continues in the middle.
			if got := <-watch(ctx, writer, at+2, 2); !slices.Equal(got, want[2:]) {
				t.Errorf("from the middle: got %q, want %q", got, want[2:])
			}
		})
	}
}

func testWatchManyChangesAtOnce(t *testing.T, backend Backend) {
	st := backend.open(t)
	mustApply(t, st, Tools(1000, "a"), store.ApplyOptions{})
	got := <-watch(t.Context(), st, 0, 1000)
	for i, l := range got {
		if want := fmt.Sprintf("%d ADDED tool-%04d a", i+1, i); l != want {
			t.Fatalf("event %d is %q, want %q", i, l, want)
		}
	}
}

// testWatchWithoutGaps: during concurrent writes, each watch sees every change once, in order.
func testWatchWithoutGaps(t *testing.T, backend Backend) {
	const writers, rounds = 3, 40
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	disk := backend.New(t)
	var watches []<-chan []string
	for range 2 {
		watches = append(watches, watch(ctx, openWith(t, disk, store.Options{WatchInterval: time.Millisecond}), 0, writers*rounds))
	}
	var wg sync.WaitGroup
	for w := range writers {
		st := open(t, disk)
		wg.Go(func() {
			for i := range rounds {
				if _, err := st.Apply(ctx, []v1.Object{Tool(fmt.Sprint("w", w), fmt.Sprint(i))}, store.ApplyOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, done := range watches {
		got := <-done
		if len(got) != writers*rounds {
			t.Fatalf("%d events, want %d: %q", len(got), writers*rounds, got)
		}
		for i, l := range got {
			if !strings.HasPrefix(l, fmt.Sprintf("%d ", i+1)) {
				t.Fatalf("event %d is %q", i+1, l)
			}
		}
	}
}

func testWatchEnds(t *testing.T, backend Backend) {
	st := openWith(t, backend.New(t), store.Options{KeepChanges: 3})
	mustApply(t, st, Tools(5, "a"), store.ApplyOptions{})
	for from, want := range map[int64]string{
		0: "the changes after 0 are no longer kept: list again", 1: "no longer kept", 9: "9 was requested, but the store is at 5",
	} {
		n := 0
		for _, err := range st.Watch(t.Context(), from) {
			n++
			if !errors.Is(err, store.ErrTooOld) || !contains(err, want) {
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
	ctx, cancel := context.WithCancel(t.Context())
	done := watch(ctx, st, 5, -1)
	cancel()
	if got := <-done; len(got) != 0 {
		t.Errorf("after the end of the context: %q, want nothing", got)
	}
	done = watch(t.Context(), st, 5, -1)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !slices.Equal(got, []string{store.ErrClosed.Error()}) {
		t.Errorf("after Close: %q", got)
	}
}

package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toolctl.dev/toolctl/pkg/store"
)

// texts returns overrides without their times.
func texts(all []store.Override) (out []string) {
	for _, o := range all {
		out = append(out, strings.Join([]string{o.Namespace, o.Tool, o.Description, o.Author}, "|"))
	}
	return out
}

func testOverrides(t *testing.T, backend Backend) {
	disk := backend.New(t)
	st := open(t, disk)
	for i, o := range []store.Override{
		{Tool: "a", Description: "first", Author: "ann"},
		{Namespace: "n", Tool: "b", Description: "other"},
		{Tool: "a", Description: "second"},
		{Namespace: "n", Tool: "b"},
	} {
		set, err := st.SetOverride(t.Context(), o)
		if err != nil || set.Version != int64(i+1) || set.Namespace == "" || time.Since(set.Time) > time.Hour {
			t.Fatalf("set %+v: %+v, %v", o, set, err)
		}
	}
	again := open(t, disk) // as after a restart
	now, err := again.Overrides(t.Context())
	if d := cmp.Diff([]string{"default|a|second|"}, texts(now)); d != "" || err != nil {
		t.Errorf("%v, overrides (-want +got):\n%s", err, d)
	}
	history, err := again.OverrideHistory(t.Context(), "", "a")
	if d := cmp.Diff([]string{"default|a|second|", "default|a|first|ann"}, texts(history)); d != "" || err != nil {
		t.Errorf("%v, history (-want +got):\n%s", err, d)
	}
	if other, err := again.OverrideHistory(t.Context(), "default", "b"); err != nil || len(other) > 0 {
		t.Errorf("of another namespace: %v, %v", other, err)
	}
	for _, bad := range []store.Override{{Description: "no tool"}, {Tool: "a", Description: strings.Repeat("x", store.MaxDescription+1)}} {
		if _, err := st.SetOverride(t.Context(), bad); err == nil {
			t.Errorf("an override of tool %q and %d bytes was taken", bad.Tool, len(bad.Description))
		}
	}
}

func testWatchOverrides(t *testing.T, backend Backend) {
	disk := backend.New(t)
	open(t, disk)
	for name, interval := range map[string]time.Duration{"another handle": time.Millisecond, "the same handle": time.Hour} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			watcher := openWith(t, disk, store.Options{WatchInterval: interval})
			writer := watcher
			if interval < time.Hour {
				writer = open(t, disk)
			}
			seen := 0
			for all, err := range watcher.WatchOverrides(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				if seen++; seen == 1 {
					if _, err := writer.SetOverride(ctx, store.Override{Tool: "t", Description: name}); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if len(all) != 1 || all[0].Description != name {
					t.Errorf("got %v", texts(all))
				}
				break
			}
			if seen != 2 {
				t.Errorf("the watch ended after %d looks", seen)
			}
		})
	}
}

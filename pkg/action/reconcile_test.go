package action

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

// revisions is a source that returns one revision after the other.
type revisions struct {
	sets []*manifest.Set // nil is an unreadable revision
	n    int
}

func (r *revisions) Load(context.Context) (*manifest.Set, error) {
	set := r.sets[r.n]
	if r.n++; set == nil {
		return nil, errors.New("no such commit")
	}
	return set, nil
}

func (r *revisions) Watch(context.Context, func(error)) (<-chan struct{}, error) {
	news := make(chan struct{}, len(r.sets))
	for range r.sets {
		news <- struct{}{}
	}
	close(news)
	return news, nil
}
func (r *revisions) Pull()                  {}
func (r *revisions) Remember(source.Memory) {}
func (r *revisions) Status() source.Status  { return source.Status{Source: "git", Revision: "c0ffee"} }

// TestReconcilerFollows checks that revisions are applied in order, that an error is logged once, and that the
// recovery is logged.
func TestReconcilerFollows(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	one, two := &manifest.Set{Objects: storetest.Tools(1, "a")}, &manifest.Set{Objects: storetest.Tools(2, "a")}
	var log bytes.Buffer
	r := &reconciler{
		Remote: &revisions{sets: []*manifest.Set{one, nil, nil, one, two}}, Store: st, Set: "tools",
		Options: func(*manifest.Set) store.ApplyOptions { return store.ApplyOptions{By: "me"} },
	}
	if err := r.Follow(t.Context(), slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	var told []string
	for line := range strings.Lines(log.String()) {
		_, text, _ := strings.Cut(line, "msg=")
		told = append(told, strings.TrimSpace(text))
	}
	want := []string{
		"applied set=tools commit=c0ffee created=1 configured=0 pruned=0 unchanged=0 breaking=false",
		`"nothing was changed" set=tools applied=c0ffee error="no such commit"`,
		`"the store matches the source again" set=tools commit=c0ffee`,
		"applied set=tools commit=c0ffee created=1 configured=0 pruned=0 unchanged=1 breaking=false",
	}
	if strings.Join(told, "\n") != strings.Join(want, "\n") {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	newest, err := st.Revisions(t.Context(), store.RevisionQuery{Set: "tools", Newest: true})
	if err != nil || len(newest) != 1 || newest[0].Command != "reconcile" || newest[0].Commit != "c0ffee" || newest[0].By != "me" {
		t.Errorf("got %+v, %v", newest, err)
	}
}

// TestReconcilerLeavesOtherSets checks that an object of another set is refused, and that manifests may refer to it.
func TestReconcilerLeavesOtherSets(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	if _, err := st.Apply(t.Context(), storetest.Tools(1, "a"), store.ApplyOptions{Set: "other"}); err != nil {
		t.Fatal(err)
	}
	r := &reconciler{
		Remote: &revisions{sets: []*manifest.Set{{Objects: storetest.Tools(1, "b")}}}, Store: st, Set: "tools",
		Options: func(*manifest.Set) store.ApplyOptions { return store.ApplyOptions{} },
	}
	if _, err := r.Once(t.Context()); !errors.As(err, new(*store.SetError)) || !strings.Contains(err.Error(), "nothing was applied") {
		t.Errorf("got %v", err)
	}
	beside, err := besideSet(t.Context(), st, "tools")
	if err != nil || len(beside) != 1 || beside[0].Head().Key() != (v1.Key{Kind: v1.KindTool, Namespace: "default", Name: "tool-0000"}) {
		t.Errorf("got %v, %v", beside, err)
	}
	if beside, err := besideSet(t.Context(), st, "other"); err != nil || len(beside) != 0 {
		t.Errorf("got %v, %v", beside, err)
	}
}

// TestReconcilerOverrides checks that overrides stay and are logged once, or are removed, depending on the option, and
// that overrides of other sets stay.
func TestReconcilerOverrides(t *testing.T) {
	for how, want := range map[string]string{
		"": "INFO the served text differs", KeepOverrides: "INFO the served text differs",
		ReportOverrides: "WARN the served text differs", RemoveOverrides: "INFO overrides are removed",
	} {
		st := memory.New(memory.Options{})
		t.Cleanup(func() { st.Close() })
		if _, err := st.Apply(t.Context(), storetest.Tools(1, "b"), store.ApplyOptions{Set: "other"}); err != nil {
			t.Fatal(err)
		}
		tool := v1.NewObject(v1.KindTool).(*v1.Tool)
		tool.Metadata.Name, tool.Spec.Description = "mine", "Its own"
		for _, name := range []string{"mine", "tool-0000"} {
			if _, err := st.SetOverride(t.Context(), store.Override{Tool: name, Description: "Another", Author: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		set := &manifest.Set{Objects: []v1.Object{tool}}
		r := &reconciler{
			Remote: &revisions{sets: []*manifest.Set{set, set, set}}, Store: st, Set: "tools", Overrides: how,
			Options: func(*manifest.Set) store.ApplyOptions { return store.ApplyOptions{By: "me"} },
		}
		if err := r.Follow(t.Context(), slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		level, text, _ := strings.Cut(want, " ")
		if got := log.String(); strings.Count(got, text) != 1 || !strings.Contains(got, "level="+level+" msg=\""+text) || !strings.Contains(got, "version 1 by ann") {
			t.Errorf("%q: logged\n%s", how, got)
		}
		left, err := st.Overrides(t.Context())
		if removed := how == RemoveOverrides; err != nil || len(left) != map[bool]int{true: 1, false: 2}[removed] || left[len(left)-1].Tool != "tool-0000" {
			t.Errorf("%q: left are %v, %v", how, left, err)
		}
		last, err := st.OverrideHistory(t.Context(), "", "mine")
		if err != nil || how == RemoveOverrides && (last[0].Author != "me" || last[0].Description != "") {
			t.Errorf("%q: got %v, %v", how, last, err)
		}
	}
}

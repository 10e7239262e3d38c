package source_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/source"
)

// memory is a Memory that outlives a Remote.
type memory struct {
	revision string
	err      error
}

func (m *memory) Last(context.Context) (string, error) { return m.revision, m.err }

func (m *memory) Use(_ context.Context, revision string) error {
	if m.err == nil {
		m.revision = revision
	}
	return m.err
}

// A revision must descend from the last used one: otherwise anyone who can push could restore any signed commit without
// a key.
func TestForcePushIsNotFollowed(t *testing.T) {
	r := newRepository(t)
	r.write(t, "a.yaml", tool("a"))
	one := r.push(t)
	r.write(t, "b.yaml", tool("b"))
	two := r.push(t)
	kept := &memory{}
	at := r.at("?ref=main")
	remote := open(t, at, source.RepositoryOptions{}, source.RemoteOptions{})
	remote.Remember(kept)
	if set, err := remote.Load(t.Context()); err != nil || names(set) != "a b" || kept.revision != two {
		t.Fatalf("got %v, %v, %+v", set, err, kept)
	}

	back := func() { r.git(t, r.work, "push", "-q", "--force", "origin", one+":main") }
	back()
	for name, remote := range map[string]*source.Remote{"the same process": remote, "a process that watches later": open(t, at, source.RepositoryOptions{}, source.RemoteOptions{})} {
		remote.Remember(kept)
		bad := new(source.RevisionError)
		if _, err := remote.Load(t.Context()); !errors.As(err, &bad) || bad.Revision != one || !strings.Contains(err.Error(), "does not descend from commit "+two) || !strings.Contains(err.Error(), "--allow-rollback") {
			t.Errorf("%s: got %v", name, err)
		}
		if s := remote.Status(); s.Failed == nil || s.Failed.Revision != one || !strings.Contains(s.Failed.Reason, "does not descend") {
			t.Errorf("%s: got %+v", name, s)
		}
		if _, set, err := remote.Newest(t.Context()); !errors.As(err, &bad) || names(set) != "a" {
			t.Errorf("%s: the newest is %v, %v", name, set, err)
		}
	}
	// A new process continues with the last used commit, and refuses older ones.
	started := open(t, at, source.RepositoryOptions{}, source.RemoteOptions{Older: true})
	started.Remember(kept)
	if set, err := started.Load(t.Context()); err != nil || names(set) != "a b" || kept.revision != two || started.Status().Failed == nil {
		t.Errorf("got %v, %v, %+v", set, err, started.Status())
	}

	// A commit on another branch does not descend from it.
	r.git(t, r.work, "checkout", "-q", "-B", "other", one)
	r.write(t, "c.yaml", tool("c"))
	beside := r.push(t)
	if _, err := remote.Load(t.Context()); err == nil || !strings.Contains(err.Error(), beside+": it does not descend") {
		t.Errorf("got %v", err)
	}
	// A merge commit descends from it.
	r.git(t, r.work, "merge", "-q", "-m", "a merge", two)
	merged := r.push(t)
	if set, err := remote.Load(t.Context()); err != nil || names(set) != "a b c" || kept.revision != merged {
		t.Errorf("got %v, %v", set, err)
	}

	// The operator may allow a rollback, and the log reports it.
	back()
	var log strings.Builder
	allowed := open(t, at, source.RepositoryOptions{}, source.RemoteOptions{AllowRollback: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	allowed.Remember(kept)
	if set, err := allowed.Load(t.Context()); err != nil || names(set) != "a" || kept.revision != one {
		t.Errorf("got %v, %v", set, err)
	}
	if s := allowed.Status(); s.RolledBackFrom != merged || s.Failed != nil {
		t.Errorf("got %+v", s)
	}
	if !strings.Contains(log.String(), "the source was rolled back") || !strings.Contains(log.String(), merged) {
		t.Error(log.String())
	}
	// A commit in the address is the operator's choice.
	pinned := open(t, r.at("?ref="+two), source.RepositoryOptions{}, source.RemoteOptions{})
	pinned.Remember(&memory{revision: merged})
	if _, err := pinned.Load(t.Context()); err != nil {
		t.Error(err)
	}
}

// While the last used revision is unknown, no new revision is served.
func TestMemoryIsNeeded(t *testing.T) {
	r := newRepository(t)
	r.write(t, "a.yaml", tool("a"))
	one := r.push(t)
	kept := &memory{err: errors.New("the store is away")}
	remote := open(t, r.at("?ref=main"), source.RepositoryOptions{}, source.RemoteOptions{})
	remote.Remember(kept)
	if _, err := remote.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "the store is away") || remote.Status().Revision != "" {
		t.Errorf("got %v", err)
	}
	kept.err = nil
	if _, err := remote.Load(t.Context()); err != nil || kept.revision != one {
		t.Errorf("got %v", err)
	}
}

func TestLongHistories(t *testing.T) {
	r := newRepository(t)
	r.write(t, "a.yaml", tool("a"))
	first := r.push(t)
	tree, head := r.git(t, r.work, "rev-parse", "HEAD^{tree}"), first
	for i := range 250 {
		head = r.git(t, r.work, "commit-tree", tree, "-p", head, "-m", fmt.Sprint(i))
	}
	r.git(t, r.work, "push", "-q", "origin", head+":main")
	remote := open(t, r.at("?ref=main"), source.RepositoryOptions{}, source.RemoteOptions{})
	remote.Remember(&memory{revision: first})
	if _, err := remote.Load(t.Context()); err != nil {
		t.Error(err)
	}
	r.git(t, r.bare, "config", "uploadpack.allowFilter", "true")
	remote = open(t, r.at("?ref=main"), source.RepositoryOptions{}, source.RemoteOptions{})
	remote.Remember(&memory{revision: first})
	if _, err := remote.Load(t.Context()); err != nil {
		t.Error(err)
	}
	remote = open(t, r.at("?ref=main"), source.RepositoryOptions{}, source.RemoteOptions{})
	remote.Remember(&memory{revision: strings.Repeat("0", 40)})
	if _, err := remote.Load(t.Context()); err == nil {
		t.Error("a commit that is nowhere is an ancestor")
	}
}

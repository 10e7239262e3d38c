package source_test

import (
	"context"
	"errors"
	"math/rand"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toolctl.dev/toolctl/pkg/source"
)

// A repository whose pack exceeds the limit is not fetched, and the previous revision is still served.
func TestPackIsBounded(t *testing.T) {
	r := newRepository(t)
	r.write(t, "a.yaml", tool("a"))
	small := r.push(t)
	a, err := source.ParseAddress(r.at("?ref=main"))
	if err != nil {
		t.Fatal(err)
	}
	origin, err := source.NewRepository(a, source.RepositoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	source.LimitPack(origin, 1<<20)
	remote := source.NewRemote(origin, source.RemoteOptions{})
	defer remote.Close()
	if set, err := remote.Load(t.Context()); err != nil || names(set) != "a" {
		t.Fatalf("got %v, %v", set, err)
	}
	noise := make([]byte, 3<<20) // incompressible
	rand.New(rand.NewSource(1)).Read(noise)
	r.write(t, "noise.bin", string(noise))
	large := r.push(t)
	if _, err = remote.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "git fetch") || !strings.Contains(err.Error(), "too large: one of its packs exceeds 1 MiB") {
		t.Errorf("got %v", err)
	}
	if s := remote.Status(); s.Revision != small || s.Failed == nil || s.Failed.Revision != large {
		t.Errorf("got %+v", s)
	}
}

// silent is an origin that never answers.
type silent struct{}

func (silent) String() string                                         { return "git+https://git.example.com/r" }
func (silent) Close() error                                           { return nil }
func (silent) Trust() (string, error)                                 { return "", nil }
func (silent) Older(context.Context, string) ([]string, error)        { return nil, nil }
func (silent) Head(context.Context) (string, error)                   { return "c0ffee", nil }
func (silent) Descends(context.Context, string, string) (bool, error) { return true, nil }
func (silent) Fetch(ctx context.Context, _, _ string) (source.Files, error) {
	<-ctx.Done()
	return source.Files{}, context.Cause(ctx)
}

// A pull that does not finish is ended after five minutes.
func TestPullIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remote := source.NewRemote(silent{}, source.RemoteOptions{})
		start := time.Now()
		_, err := remote.Load(t.Context())
		if err == nil || !strings.Contains(err.Error(), "took longer than 5m") || time.Since(start) != 5*time.Minute {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		if s := remote.Status(); s.Failed == nil || !strings.Contains(s.Failed.Reason, "took longer than 5m") {
			t.Errorf("got %+v", s)
		}
	})
}

// When a pull times out, git and all its child processes end.
func TestPullEndsGit(t *testing.T) {
	r := newRepository(t)
	r.write(t, "a.yaml", tool("a"))
	r.push(t)
	asked := sshStandIn(t, "exec sleep 1000")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan error, 1)
	remote := open(t, "git+ssh://git@git.example.com"+r.bare, source.RepositoryOptions{}, source.RemoteOptions{})
	go func() {
		_, err := remote.Load(ctx)
		ended <- err
	}()
	for len(asked(t)) == 0 { // until ssh runs
		select {
		case err := <-ended:
			t.Fatal(err)
		default:
		}
	}
	enough := errors.New("enough")
	cancel(enough)
	if err := <-ended; !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

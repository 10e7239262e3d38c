package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/overlay"
)

// Origin is the origin of the files of a [Remote].
type Origin interface {
	fmt.Stringer
	// Head returns the current revision of the address.
	Head(ctx context.Context) (revision string, err error)
	// Fetch writes the files of a revision into a folder and returns the path of the manifests in it. A
	// [*RevisionError] says that the revision must not be served.
	Fetch(ctx context.Context, revision, dir string) (Files, error)
	// Trust returns a text that changes when the trusted keys change, so that a revision is checked again.
	Trust() (string, error)
	// Older returns earlier revisions, newest first, as many as are worth trying.
	Older(ctx context.Context, revision string) ([]string, error)
	// Descends reports whether a revision is a descendant of an earlier one. It returns true if the revisions of the
	// origin have no order, or if the address names the revision itself.
	Descends(ctx context.Context, revision, earlier string) (bool, error)
	io.Closer
}

// Files are the files of a revision.
type Files struct {
	Path    string // within the folder, with slashes
	leftOut []leftOut
}

// RemoteOptions configure a [Remote]. The zero value has the defaults.
type RemoteOptions struct {
	// Interval is the interval at which the origin is polled. Default: 30 seconds.
	Interval time.Duration
	// Manifests are options for reading. A folder with a kustomization.yaml is always built, regardless of Build.
	Manifests manifest.Options
	// Check returns violations of a set in addition to [manifest.Set.Violations]. Warnings do not make a revision bad.
	// Default: no check.
	Check func(context.Context, *manifest.Set) ([]v1.Violation, error)
	// Older uses the newest good revision if the first revision is bad. Default: a bad first revision is an error, like
	// a bad later one.
	Older bool
	// AllowRollback uses revisions that do not descend from the previous one, as after a force push. Default: such a
	// revision is bad.
	AllowRollback bool
	// Logger logs which revision replaces a bad one. Default: nothing is logged.
	Logger *slog.Logger
	// Now is the clock of [Status]. Default: time.Now.
	Now func() time.Time
}

// Remote is a source of manifests for a gateway that pulls them from an origin. It never returns a revision with a
// violation: the error lists the violations. Its methods are safe for concurrent use.
type Remote struct {
	origin Origin
	opts   RemoteOptions
	poked  chan struct{}

	pulling sync.Mutex // one pull at a time
	tried   *attempt   // the last checked revision
	memory  Memory     // nil: Status has the last used revision

	mu     sync.Mutex
	status Status
}

// Memory remembers across processes which revision was used last.
type Memory interface {
	// Last returns the last used revision, or "" if it is unknown.
	Last(ctx context.Context) (revision string, err error)
	// Use saves a revision before it is used. If it returns an error, the revision is not used.
	Use(ctx context.Context, revision string) error
}

// attempt is a checked revision.
type attempt struct {
	revision, trust string
	set             *manifest.Set
	err             error
	failure         *Failure // of a bad revision
}

// NewRemote returns a source with an origin, which the source closes.
func NewRemote(origin Origin, o RemoteOptions) *Remote {
	if o.Interval <= 0 {
		o.Interval = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Remote{origin: origin, opts: o, poked: make(chan struct{}, 1), status: Status{Source: origin.String()}}
}

// Remember sets the memory for the used revision, so that later processes also refuse a revision that does not descend
// from it. It must be called before the first Load.
func (r *Remote) Remember(m Memory) {
	r.pulling.Lock()
	defer r.pulling.Unlock()
	r.memory = m
}

// Close closes the origin.
func (r *Remote) Close() error { return r.origin.Close() }

const maxPull = 5 * time.Minute

// Load returns the manifests of the current revision of the address; see [RemoteOptions].Older for the first one. It
// fetches a revision only once.
func (r *Remote) Load(ctx context.Context) (*manifest.Set, error) {
	r.pulling.Lock()
	defer r.pulling.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, maxPull, fmt.Errorf("%s took longer than %s", r.origin, clip.Duration(maxPull)))
	defer cancel()
	head, err := r.origin.Head(ctx)
	if err != nil {
		return nil, r.failed("", fmt.Errorf("%s: %w", r.origin, err))
	}
	trust, err := r.origin.Trust()
	if err != nil {
		return nil, r.failed(head, err)
	}
	if t := r.tried; t != nil && t.revision == head && t.trust == trust {
		r.unchanged(t)
		return t.set, t.err
	}
	last, err := r.last(ctx)
	if err != nil {
		return nil, r.failed(head, err)
	}
	set, from, err := r.judged(ctx, head, last)
	bad := new(RevisionError)
	switch {
	case err == nil:
		if err := r.use(ctx, head, from, nil); err != nil {
			return nil, r.failed(head, err)
		}
		r.tried = &attempt{revision: head, trust: trust, set: set}
		return set, nil
	case !errors.As(err, &bad):
		return nil, r.failed(head, fmt.Errorf("%s: %w", r.origin, err))
	}
	first := r.tried == nil && r.opts.Older
	err = r.failed(head, bad)
	r.tried = &attempt{revision: head, trust: trust, err: err, failure: r.Status().Failed}
	if !first {
		return nil, err
	}
	older, set := r.older(ctx, head, last)
	if set == nil {
		return nil, err
	}
	if err := r.use(ctx, older, "", r.tried.failure); err != nil {
		r.tried = nil
		return nil, r.failed(head, err)
	}
	r.opts.Logger.Error("the newest revision is bad; an earlier one is used", "source", r.origin.String(), "bad", head, "commit", older, "error", bad.Error())
	r.tried.set, r.tried.err = set, nil
	return set, nil
}

// last returns the revision that was used last, by this or another process.
func (r *Remote) last(ctx context.Context) (string, error) {
	if r.memory == nil {
		return r.Status().Revision, nil
	}
	last, err := r.memory.Last(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot read which revision was served before: %w", err)
	}
	return last, nil
}

// use records that a revision is used from now on.
func (r *Remote) use(ctx context.Context, revision, from string, newer *Failure) error {
	if r.memory != nil {
		if err := r.memory.Use(ctx, revision); err != nil {
			return fmt.Errorf("%s is not served, because recording it failed: %w", Named(revision), err)
		}
	}
	if from != "" {
		r.opts.Logger.Warn("the source was rolled back: the new revision does not descend from the previous one", "source", r.origin.String(), "commit", revision, "before", from)
	}
	r.using(revision, from, newer)
	return nil
}

// judged reads and checks a revision. A revision that does not descend from the last used one is bad too; if it may be
// used anyway, from is the last one.
func (r *Remote) judged(ctx context.Context, revision, last string) (set *manifest.Set, from string, err error) {
	set, err = r.read(ctx, revision)
	if err != nil || last == "" || last == revision {
		return set, "", err
	}
	after, err := r.origin.Descends(ctx, revision, last)
	switch {
	case err == nil && after:
		return set, "", nil
	case r.opts.AllowRollback && err == nil:
		return set, last, nil
	case r.opts.AllowRollback:
		return set, "", nil
	case err != nil:
		return nil, "", err
	}
	why := fmt.Errorf("it does not descend from %s, which was served before: the branch was rewritten or the tag moved; --allow-rollback serves it", Named(last))
	return set, "", &RevisionError{Revision: revision, Err: why}
}

// older returns the newest good revision before a bad one, but none before the last used one.
func (r *Remote) older(ctx context.Context, head, last string) (string, *manifest.Set) {
	all, err := r.origin.Older(ctx, head)
	if err != nil {
		r.opts.Logger.Warn("cannot read older revisions", "source", r.origin.String(), "error", err.Error())
	}
	if last != "" && !r.opts.AllowRollback {
		all = append(all[:max(0, slices.Index(all, last))], last)
	}
	for _, revision := range all {
		if set, err := r.read(ctx, revision); err == nil {
			return revision, set
		}
	}
	return "", nil
}

// read fetches and checks a revision.
func (r *Remote) read(ctx context.Context, revision string) (*manifest.Set, error) {
	tmp, err := os.MkdirTemp("", "toolctl-source-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if tmp, err = filepath.EvalSymlinks(tmp); err != nil {
		return nil, err
	}
	files, err := r.origin.Fetch(ctx, revision, tmp)
	if err != nil {
		return nil, err
	}
	set, err := r.load(ctx, revision, tmp, files, false)
	if bad := new(RevisionError); errors.As(err, &bad) && bad.Err == nil {
		return r.load(ctx, revision, tmp, files, true) // again, for the positions of all fields, which need much memory
	}
	return set, err
}

func (r *Remote) load(ctx context.Context, revision, dir string, files Files, places bool) (*manifest.Set, error) {
	o := r.opts.Manifests
	o.Stdin, o.Fields = nil, places
	o.Build = func(ctx context.Context, folder string) (*manifest.Built, error) {
		if !overlay.Is(folder) {
			return nil, nil
		}
		return overlay.Build(ctx, folder, dir)
	}
	set, err := manifest.Load(ctx, []string{filepath.Join(dir, filepath.FromSlash(files.Path))}, o)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		text := strings.NewReplacer(dir+string(filepath.Separator), "", dir, "the repository").Replace(err.Error())
		return nil, &RevisionError{Revision: revision, Err: errors.New(text)}
	case len(set.Objects) == 0 && !set.Failed() && !o.AllowEmpty:
		return nil, &RevisionError{Revision: revision, Err: fmt.Errorf("%s: no objects", files.Path)}
	}
	relabel(set, dir, "")
	if len(set.Overlays) > 0 && !places {
		r.opts.Logger.Warn("a kustomization.yaml below the path of the source is not built: name its folder in the address, as in //PATH", "source", r.origin.String(), "folders", set.Overlays)
	}
	violations := append(set.Violations[:len(set.Violations):len(set.Violations)], unread(files)...)
	for i := range violations {
		for _, l := range files.leftOut {
			if before, ok := strings.CutSuffix(violations[i].Message, l.path+": no such file or directory"); ok {
				violations[i].Message = before + l.path + " " + l.why
			}
		}
	}
	if r.opts.Check != nil && !set.Failed() {
		more, err := r.opts.Check(ctx, set)
		if err != nil {
			return nil, err
		}
		violations = append(violations, more...)
	}
	return set, judge(revision, violations)
}

// unread returns a violation for each skipped manifest file, because such a revision is not served.
func unread(files Files) []v1.Violation {
	var all []v1.Violation
	for _, l := range files.leftOut {
		if files.within(l.path) && isManifest(l.path) {
			all = append(all, v1.Violation{Source: v1.Source{File: l.path}, Message: "the file " + l.why})
		}
	}
	return all
}

func isManifest(p string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".md"}, strings.ToLower(path.Ext(p)))
}

func (f Files) within(p string) bool {
	return f.Path == "." || p == f.Path || strings.HasPrefix(p, f.Path+"/")
}

// Pull makes Watch signal at once that the origin should be polled.
func (r *Remote) Pull() {
	select {
	case r.poked <- struct{}{}:
	default: // a signal is already pending
	}
}

// Watch signals possible changes once per interval, and after each [Remote.Pull]. It does not poll the origin: Load
// does.
func (r *Remote) Watch(ctx context.Context, _ func(error)) (<-chan struct{}, error) {
	told := make(chan struct{}, 1)
	go func() {
		defer close(told)
		tick := time.NewTicker(r.opts.Interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case <-r.poked:
			}
			select {
			case told <- struct{}{}:
			default: // one load sees both changes
			}
		}
	}()
	return told, nil
}

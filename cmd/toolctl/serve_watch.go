package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/store"
)

// reloader follows changes of the manifests that are served.
type reloader struct {
	*app
	w          *workspace
	c          *catalog
	server     *server.Server
	failed     atomic.Pointer[time.Time] // when the last reload failed; nil when it did not
	served     []v1.Object
	violations []string // of what is served: a start leaves out what has violations
	told       string   // the last error in the log
}

func newReloader(a *app, w *workspace, c *catalog, s *server.Server) *reloader {
	r := &reloader{app: a, w: w, c: c, server: s, served: w.reg.Objects()}
	if w.set != nil {
		r.served = w.set.Objects // in the order of the files
		r.violations = violationTexts(w.set.Violations)
	}
	return r
}

// warning is what /readyz says, which anyone may read: the log has the reasons.
func (r *reloader) warning() string {
	at := r.failed.Load()
	if at == nil {
		return ""
	}
	return fmt.Sprintf("the reload at %s failed; the manifests before it are served, and the log says why", at.UTC().Format(time.RFC3339))
}

// watch follows changes until the function that it returns is called, which waits for
// the end.
func (r *reloader) watch(ctx context.Context) (stop func(), err error) {
	return r.each(ctx, r.reload)
}

// each calls take once, and again after each change, until stop is called.
func (r *reloader) each(ctx context.Context, take func(context.Context)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	changed <- struct{}{} // what happened since the manifests were read
	var done sync.WaitGroup
	if len(r.files) > 0 {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			cancel()
			return nil, fmt.Errorf("--watch: %w", err)
		}
		r.follow(w)
		done.Go(func() { r.watchFiles(ctx, w, changed) })
	} else {
		done.Go(func() { r.watchStore(ctx, changed) })
	}
	done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				take(ctx)
			}
		}
	})
	return func() { cancel(); done.Wait() }, nil
}

func signalChange(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // one reload sees both
	}
}

// Bounds of watching files.
const (
	maxWatched = 10_000                 // folders
	settleTime = 100 * time.Millisecond // of silence after a change; editors write in steps
)

// watchFiles tells of changes once the files are quiet. It owns the watcher.
func (r *reloader) watchFiles(ctx context.Context, w *fsnotify.Watcher, changed chan<- struct{}) {
	defer w.Close()
	quiet := time.NewTimer(0)
	<-quiet.C
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			r.log.Warn("watching files", "error", err) // events may be lost: look
			quiet.Reset(settleTime)
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			if e.Op != fsnotify.Chmod {
				quiet.Reset(settleTime)
			}
		case <-quiet.C:
			r.follow(w) // new folders
			signalChange(changed)
		}
	}
}

// follow watches every folder of the paths, and the folders of files, those that
// manifests name included: editors and configuration systems put a new file in the
// place of the old one.
func (r *reloader) follow(w *fsnotify.Watcher) {
	for _, o := range r.w.reg.Objects() {
		for name := range o.Head().Files {
			if len(w.WatchList()) < maxWatched {
				_ = w.Add(filepath.Dir(filepath.Join(filepath.Dir(o.Head().Source.File), name))) // it may be gone
			}
		}
	}
	for _, root := range r.files {
		info, err := os.Stat(root)
		if err != nil || !info.IsDir() {
			if err := w.Add(filepath.Dir(root)); err != nil {
				r.log.Warn("a folder is not watched", "path", filepath.Dir(root), "error", err)
			}
			continue
		}
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // it went meanwhile
			case err != nil:
				return err
			case !d.IsDir():
				return nil
			case d.Name() == ".git":
				return fs.SkipDir
			case len(w.WatchList()) >= maxWatched:
				return fmt.Errorf("more than %d folders", maxWatched)
			}
			return w.Add(path)
		})
		if err != nil {
			r.log.Warn("not every folder is watched", "path", root, "error", err)
		}
	}
}

// watchStore tells of changes of the store, those of other processes too.
func (r *reloader) watchStore(ctx context.Context, changed chan<- struct{}) {
	watchAgain(ctx, func() {
		list, err := r.w.store.List(ctx, store.ListOptions{Limit: 1})
		if err == nil {
			signalChange(changed)
			for _, err = range r.w.store.Watch(ctx, list.ResourceVersion) {
				if err != nil {
					break
				}
				signalChange(changed)
			}
		}
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, store.ErrTooOld) {
			r.log.Warn("watching the store", "error", err)
		}
	})
}

// watchAgain runs a watch of the store again whenever it ended, after a pause, until ctx
// ends.
func watchAgain(ctx context.Context, watch func()) {
	const pause = time.Second
	for ctx.Err() == nil {
		watch()
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// reload serves what the files or the store hold now, unless it has a violation.
func (r *reloader) reload(ctx context.Context) {
	objects, violations, err := r.load(ctx)
	same := err == nil && reflect.DeepEqual(objects, r.served) && slices.Equal(violationTexts(violations), r.violations)
	if err == nil && !same {
		for _, f := range append(violations, r.w.reg.CheckObjects(ctx, objects)...) {
			if text := f.String(); !f.IsWarning() && (err == nil || !strings.Contains(err.Error(), text)) {
				err = errors.Join(err, errors.New(text))
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		now := time.Now()
		r.failed.Store(&now)
		if text := err.Error(); text != r.told { // the log may be in a folder that is watched
			r.told = text
			r.log.Error("the reload failed: the manifests before it are served", "error", text)
		}
		return
	}
	r.told = ""
	fixed := r.failed.Swap(nil) != nil
	if same {
		if fixed {
			r.log.Info("the manifests are as they are served again")
		}
		return
	}
	r.served, r.violations = objects, nil
	r.c.logStates(r.w.mcp.replace(ctx, objects))
	r.server.Refresh()
	r.log.Info("reloaded", "objects", len(objects))
}

// violationTexts returns what keeps manifests from being served.
func violationTexts(violations []v1.Violation) []string {
	var texts []string
	for i := range violations {
		if !violations[i].IsWarning() {
			texts = append(texts, violations[i].String())
		}
	}
	return texts
}

// load reads the objects and the violations of their files.
func (r *reloader) load(ctx context.Context) ([]v1.Object, []v1.Violation, error) {
	if len(r.files) == 0 {
		objects, err := storedObjects(ctx, r.w.store, store.ListOptions{Layout: r.layout})
		return objects, nil, err
	}
	set, err := manifest.Load(ctx, r.files, manifest.Options{Layout: r.layout})
	if err != nil {
		return nil, nil, err
	}
	return set.Objects, set.Violations, nil
}

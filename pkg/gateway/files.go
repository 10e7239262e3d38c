package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// Files is a source of manifests from files and folders, and from o.Stdin for the path "-".
func Files(o manifest.Options, paths ...string) Source { return &files{opts: o, paths: paths} }

type files struct {
	opts   manifest.Options
	paths  []string
	loaded atomic.Pointer[manifest.Set] // by the last load
}

func (f *files) extend(x []v1.Extension) Source {
	o := f.opts
	o.Extensions = append(x, o.Extensions...)
	return Files(o, f.paths...)
}

func (f *files) Load(ctx context.Context) (*manifest.Set, error) {
	o := f.opts
	if o.Last = f.loaded.Load(); o.Last == nil {
		o.Last = new(manifest.Set)
	}
	set, err := manifest.Load(ctx, f.paths, o)
	if err == nil {
		f.loaded.Store(set)
	}
	return set, err
}

func (f *files) Watch(ctx context.Context, missed func(error)) (<-chan struct{}, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	f.follow(w, missed)
	told := newChanges()
	told.signal() // reports changes since the manifests were read
	go func() {
		defer close(told)
		defer w.Close()
		f.watch(ctx, w, missed, told)
	}()
	return told, nil
}

// Limits of watching files.
const (
	maxWatched = 10_000                 // folders
	settleTime = 100 * time.Millisecond // without changes before a reload; editors write in steps
)

// ofEditor matches the names of files that vim and emacs write while a file is open.
var ofEditor = regexp.MustCompile(`^\.#|^\..*\.sw.$`)

// watch signals changes once no file changes any more, until ctx ends.
func (f *files) watch(ctx context.Context, w *fsnotify.Watcher, missed func(error), told changes) {
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
			missed(err) // events may be lost, so reload
			quiet.Reset(settleTime)
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			if e.Op != fsnotify.Chmod && !ofEditor.MatchString(filepath.Base(e.Name)) {
				quiet.Reset(settleTime)
			}
		case <-quiet.C:
			f.follow(w, missed) // new folders
			told.signal()
		}
	}
}

// follow watches every folder in the paths, and the folders of all files, including those that manifests refer to. It
// watches folders because editors and configuration systems replace files.
func (f *files) follow(w *fsnotify.Watcher, missed func(error)) {
	watched := map[string]bool{}
	for _, folder := range w.WatchList() {
		watched[folder] = true
	}
	add := func(folder string) error { // repeated because the folder may have been replaced
		if watched[folder] = true; len(watched) > maxWatched {
			return fmt.Errorf("more than %d folders", maxWatched)
		}
		return w.Add(folder)
	}
	for _, o := range f.objects() {
		for name := range o.Head().Files {
			_ = add(filepath.Dir(filepath.Join(filepath.Dir(o.Head().Source.File), name))) // may be gone
		}
	}
	for _, root := range slices.Concat(f.paths, f.folders()) {
		info, err := os.Stat(root)
		if err != nil || !info.IsDir() {
			if err := add(filepath.Dir(root)); err != nil {
				missed(fmt.Errorf("the folder %s is not watched: %w", filepath.Dir(root), err))
			}
			continue
		}
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // the folder was deleted in the meantime
			case err != nil:
				return err
			case !d.IsDir():
				return nil
			case path != root && strings.HasPrefix(d.Name(), "."):
				return fs.SkipDir // no manifests are read from it
			}
			return add(path)
		})
		if err != nil {
			missed(fmt.Errorf("not every folder of %s is watched: %w", root, err))
		}
	}
}

// folders returns the folders that a build read in addition to the paths.
func (f *files) folders() []string {
	if set := f.loaded.Load(); set != nil {
		return set.Folders
	}
	return nil
}

func (f *files) objects() []v1.Object {
	if set := f.loaded.Load(); set != nil {
		return set.Objects
	}
	return nil
}

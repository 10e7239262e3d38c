package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watchPause is the time without changes before the scenarios run again. Editors write in several steps.
const watchPause = 100 * time.Millisecond

// watchFiles calls play now and after each change of a file under paths, until ctx ends.
func (o *testOptions) watchFiles(ctx context.Context, paths []string, play func() error) error {
	o.lasting = true
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer w.Close()
	for _, p := range paths {
		if p == "-" {
			return usagef("--watch needs files or folders, not stdin")
		}
		if err := watchTree(w, p); err != nil {
			return usageError{err}
		}
	}
	quiet := time.NewTimer(0)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-quiet.C:
			if err := play(); err != nil && ctx.Err() == nil {
				o.report("toolctl test", err)
			}
			if ctx.Err() == nil {
				fmt.Fprintf(o.err, "watching %s; press Ctrl-C to stop\n", strings.Join(paths, ", "))
			}
		case e := <-w.Events:
			if strings.HasPrefix(filepath.Base(e.Name), ".") || e.Op == fsnotify.Chmod {
				continue
			}
			if info, err := os.Stat(e.Name); err == nil && info.IsDir() && e.Op.Has(fsnotify.Create) {
				if err := watchTree(w, e.Name); err != nil {
					fmt.Fprintf(o.err, "warning: %v\n", err)
				}
			}
			quiet.Reset(watchPause)
		case err := <-w.Errors:
			fmt.Fprintf(o.err, "warning: watch: %v\n", err)
		}
	}
}

// watchTree watches a folder and those in it, or the folder of a file: an editor that
// replaces the file would end a watch of the file itself.
func watchTree(w *fsnotify.Watcher, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return w.Add(filepath.Dir(path))
	}
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if p != path && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		return w.Add(p)
	})
}

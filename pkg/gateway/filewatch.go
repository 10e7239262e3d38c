package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// fileWatch follows a file with secrets. While the file cannot be used, the previous content stays in use.
type fileWatch struct {
	path       string
	last       os.FileInfo // of the file at the last read
	log        *slog.Logger
	name, kept string                    // what the file is, and what stays in use, for /readyz and the log
	failed     atomic.Pointer[time.Time] // when the last read failed; nil if it succeeded
	// load reads the file and applies it. said is a message for the log, or "".
	load func() (said string, more []any, err error)
}

// watchFile reads a file, and has start follow its changes: apply changes the returned content to the next one.
func watchFile[T any](g *Gateway, w *fileWatch, read func(path string) (T, error), apply func(now, next T) (said string, more []any)) (T, error) {
	w.log = g.log
	w.last, _ = os.Stat(w.path) // before the read, so that a later change is read again
	now, err := read(w.path)
	w.load = func() (said string, more []any, err error) {
		next, err := read(w.path)
		if err == nil {
			said, more = apply(now, next)
		}
		return said, more, err
	}
	g.files = append(g.files, w)
	return now, err
}

// lookEvery is the interval at which the file is checked. File system events would miss changes behind a symlink, which
// is how secrets are mounted in containers.
const lookEvery = time.Second

// follow reads the file again after changes, until ctx ends.
func (w *fileWatch) follow(ctx context.Context) {
	every(ctx, lookEvery, func() {
		now, _ := os.Stat(w.path)
		if changed := !sameFile(w.last, now); changed || w.failed.Load() != nil {
			w.read(changed)
			w.last = now
		}
	})
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (w *fileWatch) read(changed bool) {
	said, more, err := w.load()
	if err != nil {
		if changed { // an unchanged bad file is logged only once
			now := time.Now()
			w.failed.Store(&now)
			w.log.Error(w.name+" cannot be used: "+w.kept, "file", w.path, "error", err.Error())
		}
		return
	}
	w.failed.Store(nil)
	if said != "" {
		w.log.Info(said, append([]any{"file", w.path}, more...)...)
	}
}

// warning returns the text for /readyz. Anyone may read it, so the reasons are in the log only.
func (w *fileWatch) warning() string {
	at := w.failed.Load()
	if at == nil {
		return ""
	}
	return fmt.Sprintf("%s received at %s cannot be used; %s; see the log", w.name, at.UTC().Format(time.RFC3339), w.kept)
}

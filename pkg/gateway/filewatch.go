package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// fileWatch follows a file of secrets. While it cannot be used, what was read before stays in use.
type fileWatch struct {
	path       string
	last       os.FileInfo // of the file as it was read
	log        *slog.Logger
	name, kept string                    // for /readyz: what the file is, and what stays in use
	refused    string                    // for the log: that the file cannot be used
	failed     atomic.Pointer[time.Time] // when the last reading failed; nil when it did not
	// load reads the file and puts it in use. said is for the log, "" for nothing to say.
	load func() (said string, more []any, err error)
}

// lookEvery is how often the file is looked at. Events of the file system would miss
// what a symlink leads to, which is how secrets are put into containers.
const lookEvery = time.Second

// follow reads the file again when it changes, until ctx ends.
func (w *fileWatch) follow(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, _ := os.Stat(w.path)
		if changed := !sameFile(w.last, now); changed || w.failed.Load() != nil {
			w.read(changed)
			w.last = now
		}
	}
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
		if changed { // a file that stays bad is told once
			now := time.Now()
			w.failed.Store(&now)
			w.log.Error(w.refused, "file", w.path, "error", err.Error())
		}
		return
	}
	w.failed.Store(nil)
	if said != "" {
		w.log.Info(said, append([]any{"file", w.path}, more...)...)
	}
}

// warning is what /readyz says, which anyone may read: the log has the reasons.
func (w *fileWatch) warning() string {
	at := w.failed.Load()
	if at == nil {
		return ""
	}
	return fmt.Sprintf("%s that came at %s cannot be used; %s, and the log says why", w.name, at.UTC().Format(time.RFC3339), w.kept)
}

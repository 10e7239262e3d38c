//go:build unix

package tty

import (
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// OnUserSignal calls f at each SIGUSR1, until stop is called.
func OnUserSignal(f func()) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	var calls sync.WaitGroup
	calls.Go(func() {
		for range signals {
			f()
		}
	})
	return func() {
		signal.Stop(signals)
		close(signals)
		calls.Wait()
	}
}

// ours reports whether a file belongs to the user of this process.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

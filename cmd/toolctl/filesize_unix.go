//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// catchFileSize makes a write beyond the limit of the file size (ulimit -f) an error like
// that of a full disk, where it would end the process. Children have the limit's usual effect.
func catchFileSize() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
}

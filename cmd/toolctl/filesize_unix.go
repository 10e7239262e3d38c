//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// catchFileSize turns a write beyond the file size limit (ulimit -f) into an error like that of a full disk. By
// default such a write ends the process. Child processes are not affected.
func catchFileSize() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
}

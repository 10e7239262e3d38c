//go:build unix

package footprint

import (
	"syscall"
	"time"
)

// processorTime is what the process has used of the processors; 0 when that is not known.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

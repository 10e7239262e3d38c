//go:build unix

package proc

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// become applies the limits of the plan and executes its program. It returns only on failure.
func (p *plan) become(status *os.File) error {
	runtime.LockOSThread() // the kernel keeps some attributes per thread, and the program must inherit them
	if p.Dir != "" {
		if err := os.Chdir(p.Dir); err != nil {
			return err
		}
	}
	for _, l := range []struct {
		resource int
		limit    int64
	}{
		{syscall.RLIMIT_CPU, p.Limits.CPUSeconds},
		{syscall.RLIMIT_FSIZE, p.Limits.FileBytes},
		{syscall.RLIMIT_AS, p.Limits.MemoryBytes},
	} {
		if l.limit <= 0 {
			continue
		}
		r := syscall.Rlimit{Cur: uint64(l.limit), Max: uint64(l.limit)} //nolint:gosec // the limit is positive
		if l.resource == syscall.RLIMIT_CPU {
			r.Max++ // a process gets SIGXCPU at Cur and is killed at Max
		}
		var was syscall.Rlimit
		if syscall.Getrlimit(l.resource, &was) == nil {
			r.Cur, r.Max = min(r.Cur, uint64(was.Max)), min(r.Max, uint64(was.Max)) //nolint:unconvert,gosec // the type differs between systems
		}
		if err := syscall.Setrlimit(l.resource, &r); err != nil {
			return fmt.Errorf("set limit %d to %d: %w", l.resource, l.limit, err)
		}
	}
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // a core dump would hold secrets
	if err := p.harden(); err != nil {
		return err
	}
	syscall.CloseOnExec(int(status.Fd()))
	return &os.PathError{Op: "exec", Path: p.Path, Err: syscall.Exec(p.Path, p.Args, p.Env)}
}

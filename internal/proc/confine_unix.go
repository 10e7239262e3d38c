//go:build unix

package proc

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// become takes the limits of the plan and becomes its program; it returns only when that failed.
func (p *plan) become(status *os.File) error {
	runtime.LockOSThread() // what the kernel keeps for a thread is to be that of the program
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
		r := syscall.Rlimit{Cur: uint64(l.limit), Max: uint64(l.limit)} //nolint:gosec // it is positive
		if l.resource == syscall.RLIMIT_CPU {
			r.Max++ // at Cur a process gets SIGXCPU, at Max it is killed
		}
		var was syscall.Rlimit
		if syscall.Getrlimit(l.resource, &was) == nil {
			r.Cur, r.Max = min(r.Cur, uint64(was.Max)), min(r.Max, uint64(was.Max)) //nolint:unconvert,gosec // its type differs between systems
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

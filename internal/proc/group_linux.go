package proc

import "syscall"

// ownGroup gives a child a process group, and lets the kernel kill it with the
// thread that started it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

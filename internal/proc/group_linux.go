package proc

import "syscall"

// ownGroup gives a child its own process group, and lets the kernel kill the child when the thread that
// started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

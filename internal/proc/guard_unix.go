//go:build unix

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// guard is a shell that kills the process groups of children when this process ends for any reason. It
// notices that end because its stdin closes. It runs in its own group, so that a Ctrl-C in the terminal
// does not reach it.
type guard struct {
	mu    sync.Mutex
	cmd   *exec.Cmd
	stdin *os.File // nil if the shell did not start
}

// The shell reads "+ GROUP" and "- GROUP".
const script = `g=
while read -r op p; do
  case $op in
  +) g="$g $p" ;;
  -) n=; for i in $g; do [ "$i" = "$p" ] || n="$n $i"; done; g=$n ;;
  esac
done
for i in $g; do kill -9 "-$i" 2>/dev/null; done`

func startGuard() *guard {
	r, w, err := os.Pipe()
	if err != nil {
		return &guard{}
	}
	defer r.Close()
	cmd := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{}, Dir: "/",
		Stdin: r, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	if cmd.Start() != nil {
		w.Close()
		return &guard{}
	}
	return &guard{cmd: cmd, stdin: w}
}

func (g *guard) tell(op string, pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stdin != nil {
		fmt.Fprintf(g.stdin, "%s %d\n", op, pid) // if the shell has ended, it no longer guards
	}
}

func (g *guard) add(pid int)    { g.tell("+", pid) }
func (g *guard) remove(pid int) { g.tell("-", pid) }

func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stdin != nil {
		g.stdin.Close()
		_ = g.cmd.Wait()
		g.stdin = nil
	}
}

// terminateGroup sends SIGTERM to every process of the group.
func terminateGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGTERM) }

func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// groupLives reports whether the group still has a process.
func groupLives(pid int) bool { return syscall.Kill(-pid, 0) == nil }

// Package proc runs child processes that communicate over stdin and stdout, each in its own process group,
// and ends all of them.
//
// [Child.Stop] ends a child and all processes in its group. When this process is killed, its children end
// too: on Linux the kernel kills each child (PR_SET_PDEATHSIG), and on every Unix a small shell that waits
// for the end of this process kills the groups. Processes that a child moved into their own group or
// session, as daemons do, are out of reach.
package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Spec describes a child.
type Spec struct {
	Path string   // of the program
	Args []string // without the program's name
	Env  []string // the complete environment
	Dir  string
	// StopTimeout is the time for each step of Stop.
	StopTimeout time.Duration
	// Hurry, once closed, limits each step of Stop to a fifth of a second.
	Hurry <-chan struct{}
	// Stderr receives each line of the child's stderr, without its line break and cut to 8 KiB. The function
	// may keep the line.
	Stderr func(line []byte)
	// Limits bound the child. The zero value sets no limits.
	Limits Limits
	// Sandbox confines the child; nil means no sandbox. The error is [ErrNoSandbox] if the system does not
	// support one.
	Sandbox *Sandbox
}

// A Host starts children. The zero value is ready to use. Close it after the last child has stopped.
type Host struct {
	mu     sync.Mutex
	starts chan start // nil until the first child
	ended  chan struct{}
	guard  *guard
	closed bool
}

type start struct {
	cmd  *exec.Cmd
	done chan error
}

// launch starts a command on the one thread that lives as long as the host, because the kernel kills a
// child when the thread that started it ends, not when the process ends.
func (h *Host) launch(cmd *exec.Cmd) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return errors.New("the host is closed and starts no more processes")
	}
	if h.starts == nil {
		starts, ended := make(chan start), make(chan struct{})
		h.starts, h.ended = starts, ended
		h.guard = startGuard()
		go func() {
			defer close(ended)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for s := range starts {
				s.done <- s.cmd.Start()
			}
		}()
	}
	s := start{cmd, make(chan error, 1)}
	h.starts <- s // under mu, so that Close cannot close the channel first
	h.mu.Unlock()
	return <-s.done
}

// Close releases the resources of the host. All children must have stopped before.
func (h *Host) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	if h.starts != nil {
		close(h.starts)
		<-h.ended
		h.guard.close()
	}
}

// Child is a running process.
type Child struct {
	// Stdin and Stdout are our ends of the child's pipes. The user of a Child closes them.
	Stdin, Stdout *os.File

	cmd    *exec.Cmd
	spec   Spec
	guard  *guard
	stderr *os.File

	exited   chan struct{} // the process ended
	done     chan struct{} // its group has ended too, and its stderr was read
	stopping chan struct{}
	stop     sync.Once
	err      error // of the process; set before exited is closed
}

// Start runs a child.
func (h *Host) Start(spec Spec) (*Child, error) {
	var files [6]*os.File // the child's and our end of stdin, stdout, stderr
	closeAll := func() {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	for i := 0; i < len(files); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, err
		}
		files[i], files[i+1] = w, r
	}
	files[0], files[1] = files[1], files[0] // the child has the reading end of stdin
	cmd := &exec.Cmd{Path: spec.Path, Args: append([]string{spec.Path}, spec.Args...), Env: spec.Env, Dir: spec.Dir,
		Stdin: files[0], Stdout: files[2], Stderr: files[4], SysProcAttr: ownGroup()}
	var c *confined
	if spec.Sandbox != nil || spec.Limits != (Limits{}) {
		var err error
		if c, err = confine(cmd, &spec); err != nil {
			closeAll()
			return nil, err
		}
	}
	if err := h.launch(cmd); err != nil {
		closeAll()
		if c != nil {
			c.close()
		}
		if spec.Sandbox != nil {
			err = fmt.Errorf("%w: %w", ErrNoSandbox, err)
		}
		return nil, err
	}
	if c != nil {
		if err := c.await(); err != nil {
			closeAll()
			_ = killGroup(cmd.Process.Pid)
			_ = cmd.Wait()
			return nil, err
		}
	}
	for i := 0; i < len(files); i += 2 {
		files[i].Close()
	}
	child := &Child{Stdin: files[1], Stdout: files[3], stderr: files[5], cmd: cmd, spec: spec, guard: h.guard,
		exited: make(chan struct{}), done: make(chan struct{}), stopping: make(chan struct{})}
	child.guard.add(child.PID())
	go child.reap()
	return child, nil
}

// PID returns the ID of the process, which is also the ID of its group.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Exited returns a channel that is closed when the process has ended for any reason.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Outcome waits for the end of the process and describes it, such as "exit status 1" or "signal: killed".
func (c *Child) Outcome() string {
	<-c.exited
	if c.err == nil {
		return "exit status 0"
	}
	return c.err.Error()
}

const drain = 500 * time.Millisecond // to read the rest of the pipes of a child that ended

// reap waits for the process and then ends the rest of its group.
func (c *Child) reap() {
	defer close(c.done)
	lines := make(chan struct{})
	go func() {
		defer close(lines)
		readLines(c.stderr, c.spec.Stderr)
	}()
	c.err = c.cmd.Wait()
	close(c.exited)
	select {
	case <-c.stopping:
		c.endGroup()
	default: // the child has died, so nobody uses the processes that it started
		_ = killGroup(c.PID())
	}
	// A process that still has the pipes open is out of reach, so reap does not wait for it.
	_ = c.Stdout.SetReadDeadline(time.Now().Add(drain))
	_ = c.stderr.SetReadDeadline(time.Now().Add(drain))
	<-lines
	c.stderr.Close()
	c.guard.remove(c.PID())
}

// endGroup gives the rest of the group one step to end, and then kills it.
func (c *Child) endGroup() {
	if terminateGroup(c.PID()) != nil {
		return // the group is already empty
	}
	hurry, end := c.spec.Hurry, time.Now().Add(c.spec.StopTimeout)
	for time.Now().Before(end) {
		if !groupLives(c.PID()) {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond): // there is no way to wait for a group that is not our child
		case <-hurry:
			hurry, end = nil, time.Now().Add(min(hurried, time.Until(end)))
		}
	}
	_ = killGroup(c.PID())
}

// Stop ends the child in steps: it closes stdin, then sends SIGTERM and finally SIGKILL to the whole group.
// It returns when the group has ended. Stop may be called more than once.
func (c *Child) Stop() {
	c.stop.Do(func() {
		close(c.stopping)
		c.Stdin.Close()
		c.Stdout.Close() // unblocks a child that is writing to a full pipe
		for _, step := range []func(int) error{terminateGroup, killGroup} {
			if !c.exitsInTime() {
				_ = step(c.PID())
			}
		}
	})
	<-c.done
}

const hurried = 200 * time.Millisecond // for a step once Spec.Hurry is closed

// exitsInTime reports whether the process ends within one step.
func (c *Child) exitsInTime() bool {
	t := time.NewTimer(c.spec.StopTimeout)
	defer t.Stop()
	select {
	case <-c.exited:
		return true
	case <-t.C:
		return false
	case <-c.spec.Hurry:
	}
	t.Reset(min(hurried, c.spec.StopTimeout))
	select {
	case <-c.exited:
		return true
	case <-t.C:
		return false
	}
}

// StartError returns an error that names the program that could not be started.
func StartError(command string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("the program %q is not in PATH", command)
	}
	return fmt.Errorf("the program %q cannot be started: %w", command, err)
}

// Kill kills the child's group at once. Stop waits for its end.
func (c *Child) Kill() { _ = killGroup(c.PID()) }

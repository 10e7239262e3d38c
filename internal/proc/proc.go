// Package proc runs child processes that talk over their stdin and stdout, each
// in a process group of its own, and leaves none behind.
//
// A child ends with [Child.Stop], and with it everything it started in its group.
// When this process is killed, its children end too: on Linux the kernel kills
// each child (PR_SET_PDEATHSIG), and on every Unix a small shell that waits for
// the end of this process kills the groups. What a child moved into a group or
// session of its own, as daemons do, is beyond reach.
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

// Spec says what to run.
type Spec struct {
	Path string   // of the program
	Args []string // without the program's name
	Env  []string // all of it
	Dir  string
	// StopTimeout is the time for each step of Stop.
	StopTimeout time.Duration
	// Hurry, once closed, makes each step of Stop take a fifth of a second at most.
	Hurry <-chan struct{}
	// Stderr takes each line of the child's stderr, without its end and cut to 8 KiB.
	// The line is the function's to keep.
	Stderr func(line []byte)
	// Limits bound the child; the zero value does not.
	Limits Limits
	// Sandbox is where it runs; nil for none. [ErrNoSandbox] says that there cannot be one.
	Sandbox *Sandbox
}

// A Host starts children. The zero value is ready. Close it after the last child stopped.
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

// launch starts a command on the one thread that lives as long as the host: the
// kernel kills a child with the thread that started it, not with the process.
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
	h.starts <- s // under mu, so that Close does not close the channel meanwhile
	h.mu.Unlock()
	return <-s.done
}

// Close ends what the host holds. Children must have stopped before.
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
	// Stdin and Stdout are the other ends of the child's. Whoever uses them closes them.
	Stdin, Stdout *os.File

	cmd    *exec.Cmd
	spec   Spec
	guard  *guard
	stderr *os.File

	exited   chan struct{} // the process ended
	done     chan struct{} // and so did its group, and its stderr was read
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
	files[0], files[1] = files[1], files[0] // the child reads its stdin
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

// PID is the process, and the number of its group.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Exited is closed when the process ended, by itself or not.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Outcome says how the process ended, such as "exit status 1" or "signal: killed".
// It waits for the end.
func (c *Child) Outcome() string {
	<-c.exited
	if c.err == nil {
		return "exit status 0"
	}
	return c.err.Error()
}

const drain = 500 * time.Millisecond // for what is left in the pipes of a child that ended

// reap waits for the process and then ends what is left of its group.
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
	default: // it died: what it started serves no one
		_ = killGroup(c.PID())
	}
	// Whatever still holds the pipes is out of reach and not waited for.
	_ = c.Stdout.SetReadDeadline(time.Now().Add(drain))
	_ = c.stderr.SetReadDeadline(time.Now().Add(drain))
	<-lines
	c.stderr.Close()
	c.guard.remove(c.PID())
}

// endGroup gives what is left of the group one step to end, and then kills it.
func (c *Child) endGroup() {
	if terminateGroup(c.PID()) != nil {
		return // nobody is left
	}
	hurry, end := c.spec.Hurry, time.Now().Add(c.spec.StopTimeout)
	for time.Now().Before(end) {
		if !groupLives(c.PID()) {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond): // a group that is not our child cannot be waited for
		case <-hurry:
			hurry, end = nil, time.Now().Add(min(hurried, time.Until(end)))
		}
	}
	_ = killGroup(c.PID())
}

// Stop ends the child in steps: it closes stdin, sends SIGTERM, and then SIGKILL,
// to the whole group. It returns when the group is gone. Stop may be called more than once.
func (c *Child) Stop() {
	c.stop.Do(func() {
		close(c.stopping)
		c.Stdin.Close()
		c.Stdout.Close() // a child that is blocked on a full pipe goes on
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

// StartError names the program that could not be started.
func StartError(command string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("the program %q is not in PATH", command)
	}
	return fmt.Errorf("the program %q cannot be started: %w", command, err)
}

// Kill ends the child's group at once. Stop waits for its end.
func (c *Child) Kill() { _ = killGroup(c.PID()) }

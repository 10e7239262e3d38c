package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Limits bound the resources of each process of a child; 0 means no limit.
type Limits struct {
	CPUSeconds  int64 // of processor time
	MemoryBytes int64 // of address space
	FileBytes   int64 // of each file that is written
	// Processes is the maximum number at once. It applies in a sandbox only: outside, the system
	// counts all processes of the user.
	Processes int
}

// Sandbox denies a child access to the network, devices and other processes, and to writing files outside
// the writable folders. All processes that the child starts end with the child, even outside its process
// group. A sandbox needs Linux with user namespaces.
type Sandbox struct {
	// Writable are absolute paths of folders or files that the child may write to.
	Writable []string
}

// ErrNoSandbox means that this system does not support a sandbox.
var ErrNoSandbox = errors.New("this system does not allow a sandbox")

// plan describes a confined child. It is sent through a pipe to a helper, which is this program
// started again: the helper applies the limits to itself and then becomes the child.
type plan struct {
	// Init marks the first of the two helpers of a sandbox.
	Init     bool
	Path     string
	Args     []string
	Env      []string
	Dir      string
	Limits   Limits
	Sandbox  bool
	Writable []string
}

// helperName replaces the program's path in the arguments of a helper. A helper has no other arguments, so
// that nobody can start it by accident, and it does nothing without the pipe.
const helperName = "toolctl-child-helper"

// File descriptors of a helper, besides stdin, stdout and stderr.
const (
	planFile   = 3 // the helper reads the plan from it
	statusFile = 4 // the helper writes its error to it; it closes when the child's program starts
)

func init() {
	if len(os.Args) == 1 && os.Args[0] == helperName {
		os.Exit(helper())
	}
}

// helper runs between this program and its child. It returns if it fails, or if it is the first process of
// a sandbox and the child has ended.
func helper() int {
	status := os.NewFile(statusFile, "status")
	fail := func(err error) int {
		fmt.Fprint(status, err)
		return 126
	}
	var p plan
	in := os.NewFile(planFile, "plan")
	if err := json.NewDecoder(in).Decode(&p); err != nil {
		return fail(fmt.Errorf("no plan: %w", err))
	}
	in.Close()
	if p.Init {
		code, err := p.isolate(status)
		if err != nil {
			return fail(err)
		}
		return code
	}
	return fail(p.become(status))
}

// confined is a child with limits or a sandbox, together with the pipes to its helper.
type confined struct {
	plan             plan
	tell, status     *os.File // our ends
	planEnd, statEnd *os.File // the helper's ends
}

// confine changes cmd, the command of spec, to start the helper of that child.
func confine(cmd *exec.Cmd, spec *Spec) (*confined, error) {
	c := &confined{plan: plan{Path: spec.Path, Args: cmd.Args, Env: spec.Env, Dir: spec.Dir, Limits: spec.Limits}}
	self, err := helperPath()
	if err != nil {
		return nil, err
	}
	if c.planEnd, c.tell, err = os.Pipe(); err != nil {
		return nil, err
	}
	if c.status, c.statEnd, err = os.Pipe(); err != nil {
		c.close()
		return nil, err
	}
	cmd.Path, cmd.Args, cmd.Env, cmd.Dir = self, []string{helperName}, []string{}, ""
	cmd.ExtraFiles = []*os.File{c.planEnd, c.statEnd}
	if spec.Sandbox != nil {
		c.plan.Init, c.plan.Sandbox, c.plan.Writable = true, true, spec.Sandbox.Writable
		if err := isolated(cmd); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *confined) close() {
	for _, f := range []*os.File{c.tell, c.status, c.planEnd, c.statEnd} {
		if f != nil {
			f.Close()
		}
	}
}

// await sends the plan to the helper and waits until the child's program has started.
func (c *confined) await() error {
	defer c.close()
	c.planEnd.Close()
	c.statEnd.Close()
	const patience = 20 * time.Second
	deadline := time.Now().Add(patience)
	_ = c.tell.SetWriteDeadline(deadline)
	_ = c.status.SetReadDeadline(deadline)
	if err := json.NewEncoder(c.tell).Encode(c.plan); err != nil {
		return fmt.Errorf("the helper of the process did not start: %w", err)
	}
	c.tell.Close()
	const most = 4 << 10
	why, err := io.ReadAll(io.LimitReader(c.status, most))
	switch text := strings.TrimSpace(string(why)); {
	case err != nil:
		return fmt.Errorf("the helper of the process did not start: %w", err)
	case strings.HasPrefix(text, sandboxFailed):
		return fmt.Errorf("%w: %s", ErrNoSandbox, strings.TrimPrefix(text, sandboxFailed))
	case text != "":
		return errors.New(text)
	}
	return nil
}

// sandboxFailed is the prefix of the status of a helper that failed to create its sandbox.
const sandboxFailed = "sandbox: "

// ProbeSandbox starts a program in a sandbox and stops it. The error is an [ErrNoSandbox] if the system
// does not support a sandbox.
func (h *Host) ProbeSandbox(program string) error {
	c, err := h.Start(Spec{Path: program, Dir: "/", Sandbox: &Sandbox{}, StopTimeout: time.Second})
	if err != nil {
		return err
	}
	c.Stop()
	c.Stdout.Close()
	return nil
}

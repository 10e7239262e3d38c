package source

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/proc"
)

// Limits of one run of git.
const (
	maxOutput  = 64 << 20  // of output other than file contents
	maxWritten = 512 << 20 // of each file that git writes, and so of a pack
	maxMemory  = 4 << 30
	maxReason  = 400             // characters of the error message
	stopStep   = 2 * time.Second // from SIGTERM to SIGKILL
)

// runner runs git in a folder.
type runner struct {
	host   *proc.Host
	dir    string
	env    []string
	config []string // KEY=VALUE
	bare   bool     // dir is the repository, and no other is looked for
	limits proc.Limits
}

// limited returns the resource limits that the system supports.
func limited() proc.Limits {
	if runtime.GOOS == "windows" {
		return proc.Limits{}
	}
	return proc.Limits{FileBytes: maxWritten, MemoryBytes: maxMemory}
}

// run returns the output of git.
func (r *runner) run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := r.pipe(ctx, "", func(in io.Reader) error {
		n, err := out.ReadFrom(io.LimitReader(in, maxOutput+1))
		if err == nil && n > maxOutput {
			err = fmt.Errorf("it prints more than %d bytes", maxOutput)
		}
		return err
	}, args...)
	return out.String(), err
}

// pipe runs git and passes its output to read. When read returns early, the process is ended. When ctx ends, git and
// all its child processes end.
func (r *runner) pipe(ctx context.Context, stdin string, read func(io.Reader) error, args ...string) error {
	all := []string{"--no-pager", "--literal-pathspecs"}
	for _, c := range r.config {
		all = append(all, "-c", c)
	}
	if r.bare {
		all = append(all, "--git-dir=.")
	}
	return r.start(ctx, "git", append(all, args...), args[0], stdin, read)
}

// start runs a program; what describes it in messages.
func (r *runner) start(ctx context.Context, name string, args []string, what, stdin string, read func(io.Reader) error) error {
	program, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%s is not installed, or not in PATH", name)
	}
	said := &said{}
	child, err := r.host.Start(proc.Spec{Path: program, Args: args, Env: r.env, Dir: r.dir, StopTimeout: stopStep, Stderr: said.add, Limits: r.limits})
	if err != nil {
		return proc.StartError(name, err)
	}
	stopped := context.AfterFunc(ctx, child.Stop)
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_, _ = io.WriteString(child.Stdin, stdin) // the program may not read all of it
		_ = child.Stdin.Close()
	}()
	err = read(child.Stdout)
	if err == nil {
		<-child.Exited()
	}
	stopped()
	child.Stop()
	_ = child.Stdout.Close()
	<-wrote
	switch outcome := child.Outcome(); {
	case ctx.Err() != nil:
		return fmt.Errorf("%s %s: %w", name, what, context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("%s %s: %w", name, what, err)
	case outcome != "exit status 0":
		return &gitError{name + " " + what, said.reason(outcome)}
	}
	return nil
}

// gitError is the failure of a program, with its error message.
type gitError struct{ command, reason string }

func (e *gitError) Error() string { return e.command + ": " + e.reason }

// said is the error output of git, shortened for a message.
type said struct{ first, fatal string }

func (s *said) add(line []byte) {
	text := strings.TrimSpace(string(line))
	for _, prefix := range []string{"fatal: ", "error: "} {
		if why, ok := strings.CutPrefix(text, prefix); ok && s.fatal == "" {
			s.fatal = why
		}
	}
	s.first = cmp.Or(s.first, text)
}

// userinfo matches the user and the secret in an address.
var userinfo = regexp.MustCompile(`://[^/\s'"]*@`)

func (s *said) reason(outcome string) string {
	for _, text := range []string{s.fatal, s.first} {
		if text != "" {
			return clip.Bytes(userinfo.ReplaceAllString(text, "://"), maxReason)
		}
	}
	return outcome
}

package executors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/proc"
	"toolctl.dev/toolctl/internal/template"
)

// Limits of a command.
const (
	maxExecOutput = 10 << 20
	maxExecError  = 4 << 10
	execStop      = 100 * time.Millisecond // time between asking processes to end and killing them
	mib           = 1 << 20
)

// command runs a local program for each call, without a shell.
type command struct {
	env  envref.Env
	log  *slog.Logger
	host proc.Host

	probe func() error // returns why this system has no sandbox; nil if it has one
	told  sync.Once    // guards the warning about the missing sandbox
	calls sync.WaitGroup
}

func newCommand(o Options) *command {
	c := &command{env: o.environment(), log: o.Logger}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.probe = sync.OnceValue(func() error {
		var h proc.Host
		defer h.Close()
		program, err := exec.LookPath("true")
		if err != nil {
			return err
		}
		return h.ProbeSandbox(program)
	})
	return c
}

// Name returns "exec".
func (*command) Name() string { return "exec" }

// Close waits for running calls.
func (c *command) Close() error {
	c.calls.Wait()
	c.host.Close()
	return nil
}

// run is the process of a call.
type run struct {
	tool    *v1.Tool
	spec    *v1.ExecSpec
	start   proc.Spec
	stdin   []byte
	secrets secrets
	bad     []v1.Violation // violations of the manifest
}

func (r *run) violation(path, expected, got, msg string) {
	r.add(v1.Violation{Path: path, Expected: expected, Got: got, Message: msg})
}

func (r *run) add(v v1.Violation) {
	v.Source = r.tool.Field(v.Path)
	r.bad = append(r.bad, v)
}

// Check returns the violations that would fail every call of the tool, and a warning if
// there is no sandbox.
func (c *command) Check(t *v1.Tool) []v1.Violation {
	r := &run{tool: t, spec: t.Spec.Exec}
	var uses []use
	for i, item := range r.spec.Args {
		if tpl := r.parse(i, item); tpl != nil {
			uses = append(uses, useOf(v1.Pointer("/spec/exec/args", strconv.Itoa(i)), tpl))
		}
	}
	r.bad = append(r.bad, arguments(t, uses)...)
	r.environment(c.env, false)
	if mode := r.spec.Sandbox; mode != v1.SandboxOff {
		if err := c.probe(); err != nil {
			r.violation("/spec/exec/sandbox", "a system with user namespaces", "none", noSandbox(mode, err))
			r.bad[len(r.bad)-1].Severity = v1.SeverityWarning
		}
	}
	return r.bad
}

func noSandbox(mode string, err error) string {
	if mode == v1.SandboxRequired {
		return fmt.Sprintf("%v: the tool requires a sandbox, so its calls are refused", err)
	}
	return fmt.Sprintf("%v: the command runs as the current user, with access to the network and to all files of that user", err)
}

// Unset returns a violation for each variable of a Tool that is not set, or that the tool may
// not read.
func (c *command) Unset(o v1.Object) []v1.Violation {
	t, ok := o.(*v1.Tool)
	if !ok || t.Spec.Exec == nil {
		return nil
	}
	r := &run{tool: t, spec: t.Spec.Exec}
	r.environment(c.env, true)
	return envref.Unreadable(r.bad)
}

// environment reads spec.exec.env; it reads the values of variables only if read is true.
func (r *run) environment(env envref.Env, read bool) {
	for _, name := range slices.Sorted(maps.Keys(r.spec.Env)) {
		path := v1.Pointer("/spec/exec/env", name)
		if !envref.IsName(name) {
			r.violation(path, "the name of a variable", strconv.Quote(name), fmt.Sprintf("%q is not the name of a variable", clip.Bytes(name, 80)))
			continue
		}
		pieces, err := envref.Parse(r.spec.Env[name])
		if err != nil {
			r.violation(path, "${VAR} or ${VAR:-default}", "something else", err.Error())
			continue
		}
		var text strings.Builder
		for _, p := range pieces {
			if p.Ref == nil {
				text.WriteString(p.Text)
				continue
			}
			if bad, is := env.Violation(path, p.Ref.Name); is {
				r.add(bad)
			} else if read {
				value, found, ok := p.Ref.Value(env)
				if !ok {
					r.add(envref.Unset(path, p.Ref.Name))
				}
				if found {
					r.secrets.add(value)
				}
				text.WriteString(value)
			}
		}
		if strings.Contains(text.String(), "\x00") {
			r.violation(path, "a text without NUL", "one with NUL", "the value of a variable cannot have a NUL character")
		}
		r.start.Env = append(r.start.Env, name+"="+text.String())
	}
}

func (r *run) parse(i int, item string) *template.Text {
	path := v1.Pointer("/spec/exec/args", strconv.Itoa(i))
	t, err := template.ParseText(fmt.Sprintf("args[%d]", i), item, template.Options{})
	if err != nil {
		r.violation(path, "a Go template", "a template that cannot be read", err.Error())
	}
	return t
}

// prepare makes the run of a call.
func (c *command) prepare(ctx context.Context, t *v1.Tool, args json.RawMessage) (*run, error) {
	r := &run{tool: t, spec: t.Spec.Exec}
	s := r.spec
	r.environment(c.env, true)
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	values, err := valuesOf(args)
	if err != nil {
		return nil, r.fail(v1.PhaseValidate, "the arguments are not a JSON object", err)
	}
	ended := false // "--" has ended the options
	for i, item := range s.Args {
		tmpl := r.parse(i, item)
		if tmpl == nil {
			continue
		}
		arg, err := tmpl.Render(ctx, values)
		if err != nil {
			return nil, r.fail(v1.PhaseValidate, fmt.Sprintf("spec.exec.args[%d]: %v", i, err), err)
		}
		switch {
		case strings.Contains(arg, "\x00"):
			return nil, r.fail(v1.PhaseValidate, fmt.Sprintf("spec.exec.args[%d] has a NUL character, which no argument of a command can have", i), nil)
		case !ended && strings.HasPrefix(arg, "-") && !strings.HasPrefix(item, "-"):
			return nil, r.fail(v1.PhaseValidate, fmt.Sprintf(`spec.exec.args[%d] begins with "-", and the command would read it as an option: the manifest has no "--" before it`, i), nil)
		}
		ended = ended || item == "--"
		r.start.Args = append(r.start.Args, arg)
	}
	if s.Stdin == "" || s.Stdin == "json" {
		r.stdin = append(bytes.Clone(args), '\n')
	}
	r.limit()
	r.start.Dir = r.beside(cmp.Or(s.WorkingDir, "."))
	r.start.StopTimeout = execStop
	if r.bad != nil {
		return nil, v1.NewValidationError(v1.ManifestInvalid, t.Metadata.Name, r.bad)
	}
	program := s.Command
	if strings.ContainsRune(program, filepath.Separator) {
		program = r.beside(program)
	}
	// The PATH of this program is used, never that of spec.exec.env. Programs in the current folder are refused.
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, r.fail(v1.PhaseConnect, proc.StartError(s.Command, err).Error(), err)
	}
	r.start.Path = path
	return r, nil
}

func (r *run) limit() {
	l := v1.ExecLimits{}
	if r.spec.Limits != nil {
		l = *r.spec.Limits
	}
	r.start.Limits = proc.Limits{
		CPUSeconds: int64(cmp.Or(l.CPUSeconds, 60)), MemoryBytes: int64(cmp.Or(l.MemoryMB, 4096)) * mib,
		FileBytes: int64(cmp.Or(l.FileMB, 100)) * mib, Processes: cmp.Or(l.Processes, 128),
	}
}

// beside returns a path that is relative to the manifest as an absolute path.
func (r *run) beside(path string) string {
	path = r.tool.Beside(path)
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func (r *run) fail(phase, msg string, cause error) error {
	return &v1.ExecutionError{Tool: r.tool.Metadata.Name, Phase: phase, Message: r.secrets.text(msg), Cause: cause}
}

// Execute runs the command once. An exit status other than 0 is a Result with Status "failed"
// and a [v1.ExecutionError] with the end of stderr.
func (c *command) Execute(ctx context.Context, t *v1.Tool, args json.RawMessage) (v1.Result, error) {
	c.calls.Add(1)
	defer c.calls.Done()
	if t.Spec.Exec == nil {
		return v1.Result{}, &v1.ExecutionError{Tool: t.Metadata.Name, Phase: v1.PhaseValidate, Message: "mode exec needs spec.exec"}
	}
	r, err := c.prepare(ctx, t, args)
	if err != nil {
		return v1.Result{}, err
	}
	stderr := proc.Tail{Max: maxExecError}
	r.start.Stderr = stderr.Add
	child, err := c.start(r)
	if err != nil {
		return v1.Result{Attempts: 1}, r.fail(v1.PhaseConnect, err.Error(), err)
	}
	stop := context.AfterFunc(ctx, child.Stop)
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		_, _ = child.Stdin.Write(r.stdin) // the command need not read it
		child.Stdin.Close()
	}()
	out, readErr := io.ReadAll(io.LimitReader(child.Stdout, maxExecOutput+1))
	if len(out) <= maxExecOutput && ctx.Err() == nil {
		select { // wait, because a command may close its output before it ends
		case <-child.Exited():
		case <-ctx.Done():
		}
	}
	stop()
	child.Stop()
	<-fed
	res := v1.Result{Attempts: 1, Effects: []v1.Effect{{Kind: v1.EffectProcess, Command: r.spec.Command}}}
	switch outcome := child.Outcome(); {
	case ctx.Err() != nil:
		return res, ctx.Err()
	case len(out) > maxExecOutput:
		return res, r.fail(v1.PhaseExecute, fmt.Sprintf("the command wrote more than %d MiB and was stopped", maxExecOutput/mib), nil)
	case readErr != nil && !errors.Is(readErr, os.ErrDeadlineExceeded): // a process outside of the group holds the pipe
		return res, r.fail(v1.PhaseExecute, "cannot read the output of the command: "+readErr.Error(), readErr)
	case outcome != "exit status 0":
		res.Status = v1.StatusFailed
		if why := r.secrets.foreign(stderr.Bytes(), t.Spec.Redact, maxExecError); why != "" {
			outcome += ": " + why
		}
		return res, r.fail(v1.PhaseExecute, outcome, nil)
	}
	res.Content, err = r.content(out)
	return res, err
}

// start starts the command, in a sandbox if the tool requests one and the system has one.
func (c *command) start(r *run) (*proc.Child, error) {
	if r.spec.Sandbox != v1.SandboxOff {
		err := c.probe()
		if err == nil {
			r.start.Sandbox = &proc.Sandbox{}
			for i, path := range r.spec.Writable {
				real, err := filepath.EvalSymlinks(r.beside(path))
				if err != nil {
					return nil, fmt.Errorf("spec.exec.writable[%d]: %w", i, err)
				}
				r.start.Sandbox.Writable = append(r.start.Sandbox.Writable, real)
			}
			return c.host.Start(r.start)
		}
		if r.spec.Sandbox == v1.SandboxRequired {
			return nil, errors.New(noSandbox(v1.SandboxRequired, err))
		}
		c.told.Do(func() { c.log.Warn(noSandbox("", err), slog.String("tool", r.tool.Metadata.Name)) })
	}
	return c.host.Start(r.start)
}

// content returns the output of the command as spec.exec.output says.
func (r *run) content(out []byte) (json.RawMessage, error) {
	switch r.spec.Output {
	case "text":
		return r.secrets.json(jsontext.Of(text(bytes.TrimSuffix(out, []byte("\n"))))), nil
	case "lines":
		lines := []string{}
		for line := range bytes.Lines(out) {
			lines = append(lines, text(bytes.TrimSuffix(line, []byte("\n"))))
		}
		return r.secrets.json(jsontext.Of(lines)), nil
	}
	out = bytes.TrimSpace(out)
	if err := notJSON(out); err != nil {
		shown := r.secrets.foreign(out, r.tool.Spec.Redact, maxShown)
		return nil, r.fail(v1.PhaseExecute, fmt.Sprintf("the command did not write valid JSON: %v; set spec.exec.output to text or lines if it writes something else; it wrote %q", err, shown), err)
	}
	return r.secrets.json(out), nil
}

// text returns the output of a program as valid UTF-8, which JSON requires.
func text(b []byte) string {
	return strings.ToValidUTF8(string(bytes.TrimSuffix(b, []byte("\r"))), "\uFFFD")
}

// execPlan is the command that a call would start.
type execPlan struct {
	Command    string            `json:"command"`
	Args       []string          `json:"args,omitempty"`
	Stdin      json.RawMessage   `json:"stdin,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	WorkingDir string            `json:"working_dir"`
}

// Plan returns the command that Execute would start, with the variables of the manifest unresolved.
func (c *command) Plan(ctx context.Context, t *v1.Tool, args json.RawMessage) (any, error) {
	r, err := c.prepare(ctx, t, args)
	if err != nil {
		return nil, err
	}
	r.secrets.arguments(args, t.Spec.Redact)
	p := execPlan{Command: r.start.Path, Stdin: r.secrets.json(bytes.TrimSpace(r.stdin)), Env: t.Spec.Exec.Env, WorkingDir: r.start.Dir}
	for _, a := range r.start.Args {
		p.Args = append(p.Args, r.secrets.text(a))
	}
	return p, nil
}

package mcp

import (
	"io"
	"log/slog"
	"os/exec"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/proc"
)

// command returns the command to run. The error means that the program does not exist. That is no violation
// of the manifest, because the program may be installed later.
func (r *resolver) command() (proc.Spec, error) {
	p := r.process()
	if len(r.violations) > 0 {
		return p, nil
	}
	path, err := exec.LookPath(r.server.Spec.Command)
	if err != nil {
		return p, proc.StartError(r.server.Spec.Command, err)
	}
	p.Path = path
	return p, nil
}

// process reads everything that the manifest defines for the child, except the location of the program. The
// child gets PATH, HOME and the variables of the manifest, and nothing else of the environment.
func (r *resolver) process() proc.Spec {
	s := &r.server.Spec
	p := proc.Spec{Args: make([]string, len(s.Args))}
	for i, arg := range s.Args {
		p.Args[i] = r.expand(v1.Pointer("/spec/args", strconv.Itoa(i)), arg)
	}
	vars := map[string]string{}
	for _, name := range []string{"PATH", "HOME"} {
		if v, ok := r.env.Lookup(name); ok {
			vars[name] = v
		}
	}
	for i, name := range s.EnvPassthrough {
		if r.env.Refuses(name) != "" {
			r.unset(v1.Pointer("/spec/env_passthrough", strconv.Itoa(i)), name)
		} else if v, ok := r.env.Lookup(name); ok {
			vars[name] = v
			if len(v) >= 8 { // a token is longer than a language
				r.secret(v)
			}
		}
	}
	for name, text := range s.Env {
		vars[name] = r.expand(v1.Pointer("/spec/env", name), text)
	}
	p.Env = make([]string, 0, len(vars))
	for name, v := range vars {
		p.Env = append(p.Env, name+"="+v)
	}
	if s.WorkingDir != "" {
		p.Dir = r.server.Beside(s.WorkingDir)
	}
	return p
}

// start starts the server's child and returns the link to it.
func (u *upstream) start(s *session, p proc.Spec) (*pipeLink, error) {
	p.StopTimeout, p.Hurry = u.owner.opts.StopTimeout, u.owner.opts.Hurry
	p.Stderr = func(line []byte) {
		text := s.outputMasks().Text(string(line))
		u.stderr.Add([]byte(text))
		s.log.Info(text, slog.String("source", "stderr"))
	}
	c, err := u.owner.host.Start(p)
	if err != nil {
		return nil, u.failure(noSession, proc.StartError(u.spec.Spec.Command, err).Error())
	}
	out := newPipe(c.Stdout, c.Stdin, u.owner.opts.MaxMessageBytes, func() error {
		err := c.Stdin.Close()
		c.Stdout.Close()
		return err
	})
	return newPipeLink(s, out, c), nil
}

// dialled returns the link over a stream that Options.Dial opened.
func (u *upstream) dialled(s *session, rwc io.ReadWriteCloser) link {
	return newPipeLink(s, newPipe(rwc, rwc, u.owner.opts.MaxMessageBytes, rwc.Close), nil)
}

// oddLine logs a line that is JSON but not a message.
func (s *session) oddLine(line []byte) {
	s.log.Warn("the server wrote a line that is not JSON-RPC; ignored it", slog.String("line", s.outputMasks().Text(excerpt(line))))
}

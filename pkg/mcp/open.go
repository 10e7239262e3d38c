package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/internal/netaddr"
	"toolctl.dev/toolctl/internal/outbound"
)

const (
	defaultConnectTimeout = 10 * time.Second
	// signInTimeout is how long a person may take to sign in.
	signInTimeout = 5 * time.Minute
)

// open starts the server, or connects to it, and negotiates a version. If a child dies without sending
// anything, open starts it once more with the older handshake, because some servers crash on an unknown
// method. A session for an older client uses the client's version if the server supports it.
func (u *upstream) open(ctx context.Context, sl *slot) (*session, error) {
	if u.legacy.Load() {
		return u.attempt(ctx, sl, legacyVersion)
	}
	if sl.version != "" && !u.modernOnly.Load() {
		s, err := u.attempt(ctx, sl, sl.version)
		var refused *handshakeError
		if !errors.As(err, &refused) {
			return s, err
		}
		u.modernOnly.Store(true)
	}
	s, err := u.attempt(ctx, sl, "")
	var silent *silentError
	if !errors.As(err, &silent) {
		return s, err
	}
	if s, err := u.attempt(ctx, sl, legacyVersion); err == nil {
		u.legacy.Store(true)
		return s, nil
	}
	return nil, err
}

// handshakeError means that a server refused to open a session with a version.
type handshakeError struct{ error }

func (e *handshakeError) Unwrap() error { return e.error }

// silentError means that a child ended before it sent anything.
type silentError struct{ error }

func (e *silentError) Unwrap() error { return e.error }

var errSlow = errors.New("it did not answer in time")

// attempt opens one session with one version, or with the latest for an empty version. It may take
// spec.connect_timeout_ms.
func (u *upstream) attempt(ctx context.Context, sl *slot, version string) (*session, error) {
	limit := milliseconds(u.spec.Spec.ConnectTimeoutMS, defaultConnectTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(limit, func() { cancel(errSlow) })
	defer timer.Stop()

	r := &resolver{env: envref.Env{Lookup: u.owner.opts.Env, Allow: u.owner.opts.AllowEnv}, server: u.spec}
	s := &session{log: u.log, patience: limit / 2, slot: sl, upstream: u}
	l, err := u.link(ctx, r, s, func() { timer.Reset(signInTimeout) })
	if err != nil {
		return nil, err
	}
	s.link, s.done, s.leaving, s.out.log = l, make(chan struct{}), make(chan struct{}), s.log
	err = connect(ctx, s, version)
	if err == nil {
		return s, nil
	}
	if errors.Is(context.Cause(ctx), errSlow) {
		return nil, u.failure(fmt.Sprintf("no session after %s", clip.Duration(limit)), fmt.Sprintf("no session after %s (spec.connect_timeout_ms): %v%s", clip.Duration(limit), errSlow, u.lastWords()))
	}
	var said *refusal
	if errors.As(err, &said) {
		return nil, &handshakeError{u.failure(noSession, noSession+": "+s.explain(0, err))}
	}
	var failed *connectError
	if errors.As(err, &failed) && failed.dead != nil {
		err = u.failure(noSession, noSession+": "+failed.dead.Error()+u.lastWords())
		if !s.heard.Load() {
			err = &silentError{err}
		}
		return nil, err
	}
	if why := s.reason(); why != nil {
		err = why
	}
	var alien *alienError
	if errors.As(err, &alien) {
		return nil, u.unavailable("no session: the server answered with content type %q, expected application/json or text/event-stream: check that spec.url is the URL of an MCP server", clip.Bytes(s.mask(alien.kind), maxErrorText))
	}
	if private := (*netaddr.PrivateError)(nil); errors.As(err, &private) {
		return nil, &v1.MCPError{Server: u.key.Name, Message: noSession, Detail: noSession + ": " + private.Advice("spec.allow_private_network"), Cause: private}
	}
	return nil, u.failure(noSession, noSession+": "+s.explain(0, err))
}

// lastWords quotes the last line of stderr, which often explains why a child ended.
func (u *upstream) lastWords() string {
	lines := strings.Split(strings.TrimSpace(string(u.stderr.Bytes())), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Sprintf("; the last line of its stderr is %q", clip.Bytes(last, 200))
	}
	return ""
}

// link opens the link to the server. extend gives a person time to sign in.
func (u *upstream) link(ctx context.Context, r *resolver, s *session, extend func()) (link, error) {
	if dial := u.owner.opts.Dial; dial != nil {
		rwc, err := dial(ctx, u.key)
		if err != nil {
			return nil, u.failure(noSession, err.Error())
		}
		if rwc != nil {
			r.mask(s)
			u.transport.Store("memory")
			return u.dialled(s, rwc), nil
		}
	}
	if u.single() {
		return u.singleLink(ctx, r, s)
	}
	if u.spec.Spec.Command != "" {
		l, err := u.childLink(r, s)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	u.linking.Lock()
	defer u.linking.Unlock()
	to, head := r.endpoint()
	if err := r.err(); err != nil {
		return nil, err
	}
	private := mayDialPrivate(&u.spec.Spec, to, u.owner.opts.AllowPrivateNetwork)
	if u.base == nil {
		allowed, err := netaddr.Parse(u.owner.opts.AllowNetwork)
		if err != nil {
			return nil, u.unavailable("AllowNetwork: %v", err)
		}
		config, _, violations := outbound.TLS(r.server.Head(), "/spec/tls", r.server.Spec.TLS)
		r.violations = append(r.violations, violations...)
		u.base = outbound.Transport(private, allowed, nil, config)
	}
	l := &httpLink{s: s, base: u.base, to: to, head: head, max: u.owner.opts.MaxMessageBytes, late: map[*body]time.Time{}, now: u.owner.opts.Now,
		stale: func() { u.drop(s, errUnused) }}
	if u.auth == nil && u.spec.Spec.Auth != nil {
		u.auth = u.newOAuth(r, to)
	}
	if err := r.err(); err != nil {
		u.base, u.auth = nil, nil // created again when the violations are fixed
		return nil, err
	}
	if u.auth != nil {
		l.oauth = u.auth
		u.auth.signingIn(extend)
	}
	r.mask(s)
	if u.spec.Spec.Transport == v1.TransportSSE {
		return &sseLink{httpLink: l}, nil
	}
	return l, nil
}

// childLink starts the server's child.
func (u *upstream) childLink(r *resolver, s *session) (*pipeLink, error) {
	p, noProgram := r.command()
	if err := r.err(); err != nil {
		return nil, err
	}
	if noProgram != nil {
		return nil, u.failure(noSession, noProgram.Error())
	}
	r.mask(s)
	return u.start(s, p)
}

func milliseconds(ms int, fallback time.Duration) time.Duration {
	if ms <= 0 {
		return fallback
	}
	if d := time.Duration(ms) * time.Millisecond; d/time.Millisecond == time.Duration(ms) {
		return d
	}
	return fallback
}

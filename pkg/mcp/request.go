package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// request is one request to a server, in a form that can be sent again.
type request struct {
	method string
	// target is the tool or the prompt for spans; unset for other requests.
	target attribute.KeyValue
	// name is the tool, the prompt or the resource; empty for other requests.
	name string
	// params are the parameters without _meta.
	params []param
	// limit is the time limit for one attempt; with 0 only ctx limits it.
	limit time.Duration
	// retry means that the request may be sent again even if it may have had an effect.
	retry bool
	// progress receives the progress reports of a call; nil if the caller wants no reports.
	progress func(Progress)
	// meta holds additional members for _meta; may be nil.
	meta map[string]json.RawMessage
	// more holds the parameters with the input that the server requested; may be nil.
	more []param
	// relay is set for a request of another process. That process observes the request and repeats it if that
	// is safe.
	relay *Relay
}

const (
	maxAttempts = 3
	retryWait   = 100 * time.Millisecond
	// maxErrorText limits the text of a server's error, in bytes.
	maxErrorText = 8 << 10
)

// do sends a request and returns the unchanged result, and the number of attempts. A request that certainly
// did not reach the server is sent again; a request that may have reached it only if r.retry is set. If the
// server requests input, the client of ctx provides it and do sends the request again, for each such round.
func (u *upstream) do(ctx context.Context, r request) (*wire.Message, int, error) {
	for attempts, tries, rounds := 1, 1, 1; ; attempts++ {
		answer, s, clientRequest, again, err := u.once(ctx, r)
		switch {
		case again && tries < maxAttempts && r.relay == nil:
			if !s.ended() { // the server is reachable but cannot accept the request now
				err = sleep(ctx, retryWait<<(tries-1))
			} else {
				err = nil
			}
			if err != nil {
				return nil, attempts, err
			}
			tries++
			continue
		case err != nil:
			return nil, attempts, err
		}
		in, err := u.finalOf(s, answer)
		switch {
		case err != nil:
			return nil, attempts, err
		case in == nil:
			return answer, attempts, nil
		case len(in.Requests) == 0 && rounds > maxBusy:
			return nil, attempts, u.unavailable("the server keeps deferring the request")
		}
		if r.more, err = u.fulfil(ctx, s, clientRequest, in, rounds); err != nil {
			return nil, attempts, err
		}
		tries, rounds = 1, rounds+1
	}
}

// once sends a request once. again means that it may be sent again after the error.
func (u *upstream) once(ctx context.Context, r request) (answer *wire.Message, s *session, of *clientRequest, again bool, err error) {
	if r.relay != nil {
		s = r.relay.s
		if p := PeerOf(ctx); p != nil {
			of = &clientRequest{ctx: ctx, peer: p}
		}
	} else {
		var op operation
		ctx, op = u.observe(ctx, r)
		defer func() { op.end(ctx, s, answer, err) }()
		var release func()
		if s, of, release, err = u.session(ctx); err != nil {
			return nil, nil, nil, false, err
		}
		defer release()
	}
	within, x, done := u.exchange(ctx, s, of, r)
	defer func() {
		if p := recover(); p != nil {
			err = done(u.failure("the request was not answered", fmt.Sprintf("the MCP client panicked: %v", p)))
		}
	}()
	got, err := s.link.send(within, x)
	err = done(err)
	a := got.answer
	if a != nil {
		u.reached(s, got, nil)
	}
	if a != nil && !strings.HasSuffix(r.method, "/list") { // a list alone does not prove that the server works
		s.proven.Store(true)
	}
	if a != nil && a.Error != nil && (ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)) {
		a = nil // the server's response to a cancelled request does not count
	}
	switch {
	case a != nil && a.Error != nil:
		err := u.refused(s, a.Failure())
		if r.relay == nil {
			err = u.signedAll(err)
		}
		return nil, s, of, false, err
	case err == nil && a != nil:
		return a, s, of, false, nil
	case err == nil:
		return nil, s, of, false, u.unavailable("the server's answer was lost")
	case ctx.Err() != nil:
		return nil, s, of, false, ctx.Err()
	}
	switch {
	case got.gone:
		u.drop(s, errors.New("the server no longer knows the session"))
	case got.broken:
		u.drop(s, errors.New(statusText(got.status)))
	}
	again = !got.reached || got.gone || r.retry && repeatable(got.status)
	err = u.lost(s, got, r, err)
	u.reached(s, got, err)
	return nil, s, of, again, err
}

// repeatable reports whether a request that failed with an HTTP status may succeed later. 0 means a lost
// connection or a timeout.
func repeatable(status int) bool {
	return status == 0 || status == http.StatusOK || status == http.StatusTooManyRequests || status >= 500
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// exchange returns the exchange of a request over a session, and the context for sending it. done ends
// both, and translates the error of the link.
func (u *upstream) exchange(ctx context.Context, s *session, of *clientRequest, r request) (_ context.Context, x *exchange, done func(error) error) {
	x = &exchange{method: r.method, name: r.name, params: slices.Concat(r.params, r.more), clientRequest: of}
	var cancel context.CancelFunc
	if r.limit > 0 {
		clock := callctx.WithDeadline(ctx, r.limit)
		ctx, cancel = clock, clock.Stop
		if x.clientRequest != nil {
			x.clientRequest.clock.Store(clock)
		}
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	x.id, x.progress = s.calls.NewID(), r.progress
	x.meta = s.meta(ctx, x)
	for k, v := range r.meta {
		if x.meta == nil {
			x.meta = map[string]any{}
		}
		if _, ours := x.meta[k]; !ours {
			x.meta[k] = v
		}
	}
	if s.slot != &u.shared {
		x.out = &s.out
	} else if r.progress != nil || x.clientRequest != nil {
		x.out = &outbox{log: u.log}
	}
	forget := func() {}
	if r.progress != nil || s.remote {
		forget = s.expect(x)
	}
	u.output.add(redact.FromContext(ctx))
	return ctx, x, func(err error) error {
		if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			err = context.DeadlineExceeded
		}
		forget() // no progress reports are queued after this
		if x.out != nil {
			x.out.flush()
		}
		cancel()
		return err
	}
}

// meta returns the _meta object for a request; nil if it is empty.
func (s *session) meta(ctx context.Context, x *exchange) map[string]any {
	o := &s.upstream.owner.opts
	var meta map[string]any
	set := func(k string, v any) {
		if meta == nil {
			meta = map[string]any{}
		}
		meta[k] = v
	}
	if o.Meta != nil {
		for k, v := range o.Meta(ctx) {
			set(k, v)
		}
	}
	if s.modern() {
		set(wire.MetaVersion, s.hello.Version)
		set(wire.MetaClient, s.me())
		can := s.slot.key.can
		if x.clientRequest != nil {
			can = x.clientRequest.peer.Can
			if level := x.clientRequest.peer.LogLevel; level != "" {
				set(wire.MetaLogLevel, level)
			}
		}
		set(wire.MetaCapabilities, can.wire())
	}
	if s.remote && x.clientRequest != nil { // the process that runs the server asks the client through this process
		set(wire.MetaCapabilities, x.clientRequest.peer.Can.wire())
	}
	if x.progress != nil {
		set("progressToken", x.id)
	}
	return meta
}

// drop takes an unusable session out of use.
func (u *upstream) drop(s *session, why error) {
	s.fail(why)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.retire(s)
}

// refused returns the error for a JSON-RPC error of the server.
func (u *upstream) refused(s *session, said *wire.Error) error {
	code := said.Code
	if code == 0 && !s.remote { // code 0 is reserved for servers that cannot be reached
		code = -32603
	}
	text := said.Message
	if text == "" {
		text = "the server sent no message"
	}
	e := &v1.MCPError{Server: u.key.Name, Code: code, Message: clip.Bytes(s.mask(text), maxErrorText)}
	if len(said.Data) > 0 && len(said.Data) <= maxErrorText && json.Valid(said.Data) {
		e.Data = s.masks.Bare().JSON(said.Data)
	}
	return e
}

// lost returns the error for a request without a response.
func (u *upstream) lost(s *session, got receipt, r request, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && r.limit > 0 {
		return &v1.ExecutionError{Phase: v1.PhaseTimeout, Cause: context.DeadlineExceeded,
			Message: fmt.Sprintf("mcp server %q did not answer %s within %s (timeout_ms)", u.key.Name, r.method, clip.Duration(r.limit))}
	}
	if errors.Is(err, wire.ErrClosed) || got.status == 0 {
		// The reason arrives shortly after the calls have failed.
		select {
		case <-s.done:
			return u.lostSession(s)
		case <-time.After(reasonWait(err)):
		}
	}
	callers := "the request was not answered"
	if errors.Is(err, errTooLarge) {
		callers = errTooLarge.Error()
	}
	return u.failure(callers, s.explain(got.status, err))
}

// explain returns the reason why a request got no response: an OAuth error, the status of the HTTP
// response, or the error itself.
func (s *session) explain(status int, err error) string {
	var auth *authError
	switch {
	case errors.As(err, &auth):
		err = auth
	case status >= 300:
		return statusText(status)
	}
	return clip.Bytes(s.mask(err.Error()), maxErrorText)
}

func statusText(status int) string {
	text := fmt.Sprintf("the server answered %d %s", status, http.StatusText(status))
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		text += ": check spec.auth and spec.headers"
	}
	return text
}

// reasonWait returns how long to wait for the reason of a session's end after a call failed.
func reasonWait(err error) time.Duration {
	if errors.Is(err, wire.ErrClosed) {
		return time.Second
	}
	return 200 * time.Millisecond
}

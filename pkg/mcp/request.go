package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
)

// request is one request to a server, in the form that may be sent again.
type request struct {
	method string
	// send hands the request to the SDK.
	send func(context.Context, *sdk.ClientSession, sdk.Meta) error
	// limit is the time for one try; 0 is what ctx allows.
	limit time.Duration
	// retry says that the request may be sent again after it may have had an effect.
	retry bool
	// progress takes reports of a call; nil when nobody asked.
	progress func(Progress)
}

const (
	maxAttempts = 3
	retryWait   = 100 * time.Millisecond
	// maxErrorText bounds what a server says in an error.
	maxErrorText = 8 << 10
)

// do sends a request and returns the result as it came, and how often it was sent.
// What surely never reached the server is sent again; what may have reached it only
// when the request says so.
func (u *upstream) do(ctx context.Context, r request) (json.RawMessage, int, error) {
	for attempt := 1; ; attempt++ {
		s, err := u.acquire(ctx)
		if err != nil {
			return nil, attempt, err
		}
		x := &exchange{method: r.method}
		err = u.try(ctx, s, x, r)
		u.release(s)
		a := x.answer.Load()
		if a != nil && !strings.HasSuffix(r.method, "/list") { // a server that only lists proves nothing
			s.proven.Store(true)
		}
		switch {
		case a != nil && a.err != nil:
			return nil, attempt, u.refused(s, a)
		case err == nil && a != nil:
			return a.result, attempt, nil
		case err == nil:
			return nil, attempt, u.unavailable("the server's answer was lost")
		case a != nil && ctx.Err() == nil: // it asks for input, such as a form that a person fills in
			return nil, attempt, u.refused(s, &answer{err: &jsonrpc.Error{Message: "the server's answer cannot be used: " + plain(err)}})
		}
		if ctx.Err() != nil {
			return nil, attempt, ctx.Err()
		}
		if x.gone.Load() {
			u.drop(s, errors.New("the server does not know the session any more"))
		}
		again := !x.reached() || x.gone.Load() || r.retry && repeatable(int(x.status.Load()))
		if !again || attempt == maxAttempts {
			return nil, attempt, u.lost(s, x, r, err)
		}
		if !s.ended() { // the server is there and cannot take it now
			if werr := sleep(ctx, retryWait<<(attempt-1)); werr != nil {
				return nil, attempt, werr
			}
		}
	}
}

// repeatable reports whether a request that failed with an HTTP status may fare
// better later; 0 is a connection that broke, or a time that ran out.
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

// try sends a request once.
func (u *upstream) try(ctx context.Context, s *session, x *exchange, r request) (err error) {
	// The context of package context itself: what net/http derives from another kind
	// costs a goroutine each time.
	var cancel context.CancelFunc
	if r.limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, r.limit)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	var meta sdk.Meta
	if m := u.owner.opts.Meta; m != nil {
		for k, v := range m(ctx) {
			if meta == nil {
				meta = sdk.Meta{}
			}
			meta[k] = v
		}
	}
	var token string
	if r.progress != nil {
		token = "p" + strconv.FormatInt(u.owner.tokens.Add(1), 10)
		if meta == nil {
			meta = sdk.Meta{}
		}
		meta["progressToken"] = token
		x.progress = make(chan Progress, 64)
		s.expect(x, token)
		reported := make(chan struct{})
		go func() {
			defer close(reported)
			u.report(x.progress, r.progress)
		}()
		defer func() {
			s.forget(x, token) // nothing is sent on the channel from here on
			close(x.progress)
			<-reported
		}()
	} else {
		defer s.forget(x, token)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the MCP client panicked: %v", p)
		}
	}()
	return r.send(withExchange(ctx, x), s.client, meta)
}

// report hands progress on. A panic of the hook is contained: it is not the server's fault.
func (u *upstream) report(from <-chan Progress, to func(Progress)) {
	for p := range from {
		func() {
			defer func() {
				if r := recover(); r != nil {
					u.log.Error("the progress hook panicked", "panic", fmt.Sprint(r))
				}
			}()
			to(p)
		}()
	}
}

// drop takes a session out of use that cannot be used any more.
func (u *upstream) drop(s *session, why error) {
	s.fail(why)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.retire(s)
}

// refused is the error of a server that answered with a JSON-RPC error.
func (u *upstream) refused(s *session, a *answer) error {
	code := a.err.Code
	if code == 0 { // 0 is kept for servers that cannot be reached
		code = -32603
	}
	text := a.err.Message
	if text == "" {
		text = "the server gave no message"
	}
	return &v1.MCPError{Server: u.key.Name, Code: code, Message: s.mask(clip(text, maxErrorText))}
}

// lost is the error of a request that got no answer.
func (u *upstream) lost(s *session, x *exchange, r request, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && r.limit > 0 {
		return &v1.ExecutionError{Phase: v1.PhaseTimeout, Cause: context.DeadlineExceeded,
			Message: fmt.Sprintf("mcp server %q did not answer %s within %s (timeout_ms)", u.key.Name, r.method, r.limit)}
	}
	if errors.Is(err, sdk.ErrConnectionClosed) || x.status.Load() == 0 {
		// The reason comes a moment after the calls were told.
		select {
		case <-s.done:
			return u.unavailable("%s", clip(s.mask(plain(s.reason())), maxErrorText))
		case <-time.After(reasonWait(err)):
		}
	}
	return u.unavailable("%s", s.explain(x, err))
}

// explain says why a request got no answer: the refusal of a token, the status of the
// response, or the error itself.
func (s *session) explain(x *exchange, err error) string {
	var auth *authError
	switch status := int(x.status.Load()); {
	case errors.As(err, &auth):
		err = auth
	case status >= 300:
		return statusText(status)
	}
	return clip(s.mask(plain(err)), maxErrorText)
}

func statusText(status int) string {
	text := fmt.Sprintf("the server answered %d %s", status, http.StatusText(status))
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		text += ": check spec.auth and spec.headers"
	}
	return text
}

// reasonWait is how long the end of a session may take to show after a call failed.
func reasonWait(err error) time.Duration {
	if errors.Is(err, sdk.ErrConnectionClosed) {
		return time.Second
	}
	return 200 * time.Millisecond
}

// clip cuts a text at a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

package executors

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/netaddr"
	"toolctl.dev/toolctl/internal/outbound"
	"toolctl.dev/toolctl/internal/response"
)

// httpCall is a running call: its request, attempts and response.
type httpCall struct {
	h       *HTTP
	tool    *v1.Tool
	p       *httpTool
	args    json.RawMessage
	draft   *draft
	secrets secrets
	masks   *secrets // the secrets and redacted arguments; set by hidden
	base    string   // the fixed part of the URL with the values of its variables

	req    *http.Request
	trace  httptrace.ClientTrace
	body   []byte
	source *tokenSource // nil without OAuth 2

	attempts  int
	connected bool // the current attempt has a connection: the request may have been sent
	reached   bool // an attempt had a connection
	code      int  // status of the last response; 0 means no response
	handled   bool // the body of the current attempt was read
	renewed   bool // a token was refused once; a second refusal is final
	stale     bool // the token of the last attempt was refused
	wait      time.Duration
	outOfTime time.Duration // a wait that would have passed the deadline
	status    string        // status of an unsuccessful response
	answer    []byte
	header    http.Header

	page int   // number of the current page, from 1; 0 without spec.http.paginate
	size int64 // size of the pages before this page, in bytes
}

// run sends the request, and those for further pages, and makes the result.
func (c *httpCall) run(ctx context.Context) (v1.Result, error) {
	if c.p.pages != nil {
		return c.all(ctx)
	}
	status, err := c.send(ctx)
	if err != nil {
		return v1.Result{Status: status, Attempts: c.attempts}, err
	}
	content, parts, err := c.p.content(ctx, c.header, c.answer, &c.secrets)
	if err != nil {
		return v1.Result{Attempts: c.attempts}, c.fail(v1.PhaseValidate, err.Error(), err)
	}
	return v1.Result{Status: v1.StatusComplete, Content: content, Parts: parts, Attempts: c.attempts}, nil
}

// send sends a request and reads the response. For an unsuccessful response it also returns the status of the result.
func (c *httpCall) send(ctx context.Context) (status string, err error) {
	if err := c.turn(ctx); err != nil {
		return "", err
	}
	req := &retryablehttp.Request{Request: c.req}
	if c.body != nil {
		if err := req.SetBody(c.body); err != nil {
			return "", c.fail(v1.PhaseValidate, err.Error(), err)
		}
	}
	req.SetResponseHandler(c.read)
	client := retryablehttp.Client{
		HTTPClient: c.p.client.Load(), RetryMax: c.p.attempts - 1, CheckRetry: c.again, PrepareRetry: c.prepareRetry, RequestLogHook: c.begin,
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return c.wait },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	if _, err = client.Do(req); err != nil { //nolint:bodyclose // read, the response handler, closed it
		return "", c.describe(ctx, err)
	}
	if c.status == "" {
		if err := unpacked(c.header, c.answer); err != nil {
			return "", c.fail(v1.PhaseValidate, err.Error(), err)
		}
		return "", nil
	}
	if errors.Is(ctx.Err(), context.Canceled) { // the call was cancelled while the response was read
		return "", c.describe(ctx, ctx.Err())
	}
	msg := fmt.Sprintf("%s (%s %s)", c.p.failure(c.status, c.header, c.answer, c.hidden()), c.p.method, c.shownURL(ctx))
	if c.p.spec.Method == "" && (c.code == http.StatusNotFound || c.code == http.StatusMethodNotAllowed) {
		msg += "; spec.http.method is not set, which means POST"
	}
	if c.outOfTime > 0 {
		msg += fmt.Sprintf("; the next attempt would start in %s, after the deadline of the call", clip.Duration(c.outOfTime))
	}
	return v1.StatusFailed, c.fail(v1.PhaseExecute, msg+c.tries(), nil)
}

// prepareRetry is called before each further attempt.
func (c *httpCall) prepareRetry(req *http.Request) error {
	if err := c.turn(req.Context()); err != nil || c.source == nil {
		return err
	}
	return c.reauthorize(req)
}

// begin is called before each attempt.
func (c *httpCall) begin(retryablehttp.Logger, *http.Request, int) {
	c.attempts++
	c.connected, c.handled = false, false
	c.status, c.answer, c.header, c.code = "", nil, nil, 0
}

// read reads the body of a response. It runs within the attempt, so that a request whose
// body breaks off can be retried.
func (c *httpCall) read(resp *http.Response) error {
	defer resp.Body.Close()
	c.handled = true
	c.header, c.code = resp.Header, resp.StatusCode
	var err error
	if c.answer, err = readBody(resp, c.p.maxBytes-c.size); isTooLarge(err) {
		err = tooLargeError{c.p.maxBytes, c.size > 0}
	}
	c.answer = inUTF8(resp.Header, c.answer)
	if resp.StatusCode/100 == 2 {
		return err
	}
	// The status is the error; the body is shown as far as it was received.
	c.status = resp.Status
	return nil
}

// again decides whether to make another attempt, and sets the wait before it. It is called
// after the headers and, if it returned false, again after the body.
func (c *httpCall) again(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if c.handled && err == nil || ctx.Err() != nil && err != nil || c.attempts >= c.p.attempts {
		return false, nil //nolint:nilerr // an error here would replace that of the attempt
	}
	reason := ""
	switch {
	case err != nil:
		if !c.repeatable(err) {
			return false, nil
		}
		reason = c.hidden().text(withoutURL(err).Error())
		c.wait = c.backoff()
	case resp.StatusCode == http.StatusUnauthorized && c.source != nil && !c.renewed:
		// A request with a refused token had no effect; a newer token may be accepted.
		c.renewed, c.stale, c.wait, reason = true, true, 0, resp.Status
	case slices.Contains(c.p.retryOn, resp.StatusCode) && c.p.repeats:
		c.wait, reason = c.backoff(), resp.Status
		if asked, ok := response.RetryAfter(resp.Header, time.Now()); ok {
			c.wait = asked
		}
	default:
		return false, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) { // the call was cancelled before the next attempt
		return false, ctx.Err()
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Add(c.wait).Before(deadline) {
		c.outOfTime = c.wait
		return false, nil
	}
	if c.h.log.Enabled(ctx, slog.LevelDebug) {
		c.h.log.DebugContext(ctx, "http attempt failed", slog.String("tool", c.tool.Metadata.Name), slog.String("url", c.shownURL(ctx)),
			slog.Int("attempt", c.attempts), slog.String("reason", reason), slog.Duration("wait", c.wait))
	}
	return true, nil
}

// repeatable reports whether a request that failed with err may be sent again: if it never
// reached the server, or if repeating it is safe.
func (c *httpCall) repeatable(err error) bool {
	var (
		refused  *netaddr.PrivateError
		redirect *redirectError
		cert     *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &refused), errors.As(err, &redirect), errors.As(err, &cert), isTooLarge(err), errors.Is(err, budget.ErrKept):
		return false // it would fail in the same way again
	}
	return !c.connected || c.p.repeats
}

// backoff doubles the delay with each attempt up to the maximum, and subtracts up to half of
// it at random, so that clients that failed together do not retry together.
func (c *httpCall) backoff() time.Duration {
	d := c.p.delay
	for range c.attempts - 1 {
		if d >= c.p.maxDelay/2 {
			d = c.p.maxDelay
			break
		}
		d *= 2
	}
	d = min(d, c.p.maxDelay)
	return d - time.Duration(rand.Int64N(int64(d)/2+1))
}

// reauthorize sets the token of a further attempt, since the last one may have expired or was refused.
func (c *httpCall) reauthorize(req *http.Request) error {
	if c.stale {
		c.stale = false
		c.source.forget(strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
	}
	token, err := c.source.token(req.Context())
	if err != nil {
		return c.tokenFailure(req.Context(), err)
	}
	c.secrets.add(token)
	c.masks = nil
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// describe turns an error of the last attempt into one for the caller.
func (c *httpCall) describe(ctx context.Context, err error) error {
	var (
		own     *v1.ExecutionError
		timeout net.Error
		refused *netaddr.PrivateError
		dial    *net.OpError
	)
	err = withoutURL(err)
	target := c.p.method + " " + c.shownURL(ctx)
	switch ended := ctx.Err(); {
	case errors.As(err, &own):
		return own
	case errors.Is(ended, context.Canceled):
		return c.fail(v1.PhaseExecute, target+": cancelled"+c.tries(), ended)
	case ended != nil:
		return c.fail(v1.PhaseTimeout, target+": timed out"+c.tries(), ended)
	case isTooLarge(err):
		return c.fail(v1.PhaseValidate, err.Error(), err)
	case errors.As(err, &refused):
		return c.fail(v1.PhaseConnect, target+": "+refused.Advice("spec.http.allow_private_network"), refused)
	case !c.connected, errors.As(err, &dial) && dial.Op == "dial":
		if errors.As(err, &timeout) && timeout.Timeout() && c.p.timeout > 0 && c.p.timeout <= outbound.DialTimeout {
			return c.fail(v1.PhaseTimeout, fmt.Sprintf("cannot connect for %s within %s (spec.http.timeout_ms)%s", target, clip.Duration(c.p.timeout), c.tries()), err)
		}
		return c.fail(v1.PhaseConnect, fmt.Sprintf("cannot connect for %s: %v%s", target, err, c.tries()), err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return c.fail(v1.PhaseTimeout, fmt.Sprintf("%s: no complete response within %s (spec.http.timeout_ms)%s", target, clip.Duration(c.p.timeout), c.tries()), err)
	}
	return c.fail(v1.PhaseExecute, fmt.Sprintf("%s: %v%s", target, err, c.tries()), err)
}

func (c *httpCall) tokenFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return c.describe(ctx, err)
	}
	return c.fail(v1.PhaseConnect, err.Error(), err)
}

func (c *httpCall) tries() string {
	if c.attempts < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d attempts)", c.attempts)
}

// fail returns the error of the call. A cause that contains a secret, such as a response quoted
// in an error of a library, is left out, since it could be printed by itself.
func (c *httpCall) fail(phase, message string, cause error) error {
	if cause != nil && c.hidden().text(cause.Error()) != cause.Error() {
		cause = nil
	}
	if c.page > 1 {
		message = fmt.Sprintf("page %d: %s", c.page, message)
	}
	return &v1.ExecutionError{Tool: c.tool.Metadata.Name, Phase: phase, Message: c.hidden().text(message), Cause: cause}
}

// withoutURL removes the method and the URL that net/http adds to errors.
func withoutURL(err error) error {
	var wrapped *url.Error
	for errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err
}

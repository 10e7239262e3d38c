package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Bounds of one exchange.
const (
	maxAnswer     = 32 << 20         // bytes of an answer or a stream
	maxErrorBody  = 64 << 10         // bytes kept of an answer that is an error
	maxRetries    = 2                // beside the first attempt
	maxRetryAfter = 30 * time.Second // a longer wait is for the caller to decide
	maxBackoff    = 8 * time.Second
)

const eventStream = "text/event-stream"

var errTooLarge = fmt.Errorf("the answer is larger than %d MiB", maxAnswer>>20)

// newHTTPClient returns the client that sends the requests of all providers, with one
// policy of retries.
func newHTTPClient(base http.RoundTripper) *http.Client {
	retry := &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: base, CheckRedirect: noRedirect},
		RetryMax:     maxRetries,
		CheckRetry:   again,
		Backoff:      wait,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return &http.Client{
		Transport:     &transport{next: &retryablehttp.RoundTripper{Client: retry}},
		CheckRedirect: noRedirect,
	}
}

// noRedirect keeps keys from going anywhere but to the address that was configured.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// again reports whether a request is sent once more: when the server could not be
// reached, is busy or failed, and does not ask for more patience than we have.
func again(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		retry, _ := retryablehttp.DefaultRetryPolicy(ctx, resp, err)
		return retry, nil
	}
	switch resp.Header.Get("X-Should-Retry") {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	if after, ok := retryAfter(resp); ok && after > maxRetryAfter {
		return false, nil
	}
	return resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode == http.StatusConflict ||
		resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500, nil
}

// wait is the pause before the next attempt: what the server asks for, else half a
// second, doubled each time, less up to a quarter of chance.
func wait(_, _ time.Duration, attempt int, resp *http.Response) time.Duration {
	if after, ok := retryAfter(resp); ok {
		return min(after, maxRetryAfter)
	}
	d := min(500*time.Millisecond<<min(attempt, 10), maxBackoff)
	return d - rand.N(d/4)
}

// retryAfter reads Retry-After (RFC 9110, section 10.2.3), and retry-after-ms, which
// says it more finely.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	if resp == nil {
		return 0, false
	}
	const longest = float64(24 * time.Hour) // what is longer overflows, and is too long anyway
	for _, h := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		text := resp.Header.Get(h.name)
		if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 {
			return time.Duration(min(n*float64(h.unit), longest)), true
		}
		if at, err := http.ParseTime(text); err == nil {
			return max(0, time.Until(at)), true
		}
	}
	return 0, false
}

// exchange is what was seen of one call's last attempt.
type exchange struct {
	mu       sync.Mutex
	status   int
	media    string // type of the answer
	redirect string
	body     []byte // of an answer that is an error
	err      error
}

type exchangeKey struct{}

func (x *exchange) failed() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

func (x *exchange) answer() (int, []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.status, x.body
}

func (x *exchange) location() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.redirect
}

// foreign is the media type of an answer that no API gives; empty for the others.
func (x *exchange) foreign() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.media == "" || x.media == eventStream || strings.HasSuffix(x.media, "json") {
		return ""
	}
	return x.media
}

func (x *exchange) set(do func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	do()
}

// transport notes what came of a request in the exchange of its context, and bounds
// what is read.
type transport struct{ next http.RoundTripper }

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errors.New("a request outside of a call")
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		x.set(func() { x.err = err })
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close()
		}
		return nil, err
	}
	if resp.StatusCode >= 300 {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what came is enough
		_ = resp.Body.Close()
		x.set(func() { x.status, x.body, x.redirect = resp.StatusCode, body, resp.Header.Get("Location") })
		resp.Body = http.NoBody // [Client.Do] makes the error of it
		return resp, nil
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	x.set(func() { x.status, x.media = resp.StatusCode, media })
	resp.Body = &bounded{x: x, body: resp.Body, left: maxAnswer, stream: media == eventStream}
	return resp, nil
}

// bounded reads an answer up to maxAnswer. What breaks a stream is noted and then read
// as its end: [Client.Do] makes the error of it, and the reply has what came before.
type bounded struct {
	x      *exchange
	body   io.ReadCloser
	left   int64
	stream bool
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// A last byte tells an answer of just the allowed size from a larger one.
		if n, err := io.ReadFull(b.body, make([]byte, 1)); n == 0 {
			return 0, b.note(err)
		}
		b.x.set(func() { b.x.err = errTooLarge })
		return 0, io.EOF
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.body.Read(p)
	b.left -= int64(n)
	if err != nil {
		err = b.note(err)
	}
	return n, err
}

func (b *bounded) note(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	b.x.set(func() { b.x.err = err })
	if b.stream {
		return io.EOF
	}
	return err
}

// Close never fails: nothing is lost by it.
func (b *bounded) Close() error {
	_ = b.body.Close()
	return nil
}

package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/response"
	"toolctl.dev/toolctl/pkg/agent"
)

// Bounds of one exchange.
const (
	maxAnswer     = 32 << 20         // size of a response or stream, in bytes
	maxErrorBody  = 64 << 10         // bytes read of an error response
	maxRetries    = 2                // attempts after the first one
	maxRetryAfter = 30 * time.Second // the caller decides about longer waits
	maxBackoff    = 8 * time.Second
)

// newClient returns the client of a model. It follows no redirects, so that keys reach only
// the configured address.
func newClient(base http.RoundTripper) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: base, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		RetryMax:     maxRetries,
		CheckRetry:   again,
		Backoff:      wait,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

// again reports whether to retry a request: the server could not be reached, is busy or failed,
// and does not ask for a longer wait than maxRetryAfter.
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
	if after, ok := response.RetryAfter(resp.Header, time.Now()); ok && after > maxRetryAfter {
		return false, nil
	}
	return resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode == http.StatusConflict ||
		resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500, nil
}

// wait returns the pause before the next attempt: the time that the server requests, or half a second, doubled each
// time, with jitter of up to a quarter.
func wait(_, _ time.Duration, attempt int, resp *http.Response) time.Duration {
	if resp != nil {
		if after, ok := response.RetryAfter(resp.Header, time.Now()); ok {
			return min(after, maxRetryAfter)
		}
	}
	d := min(500*time.Millisecond<<min(attempt, 10), maxBackoff)
	return d - rand.N(d/4)
}

// Panicked is the start of the error for a response that made its reader panic. Fuzz tests look for it.
const Panicked = "reading it failed"

// exchange sends a request and reads the response. The reply holds what came before an error.
func (m *Model) exchange(ctx context.Context, address *url.URL, body Object, b *Builder) (reply agent.Reply, err error) {
	reader := m.api.Reader(b)
	defer func() {
		// A panic about foreign input must not end the process.
		if p := recover(); p != nil {
			err = m.fault(fmt.Errorf("%s: %v", Panicked, p), "")
		}
	}()
	defer func() { reply = b.reply(m.api.Name, reader) }()
	resp, err := m.post(ctx, address, body, b.Stream)
	if err != nil {
		return reply, err
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	in := http.MaxBytesReader(nil, resp.Body, maxAnswer)
	if b.Stream && !strings.HasSuffix(media, "json") {
		err = m.events(in, b, reader)
	} else {
		err = m.document(in, b, reader)
	}
	return reply, m.fault(err, media)
}

// post sends a JSON document. A response without a success status is an error.
func (m *Model) post(ctx context.Context, address *url.URL, body Object, stream bool) (*http.Response, error) {
	text, err := jsontext.Marshal(body)
	if err != nil {
		return nil, m.execution(v1.PhaseValidate, "the request cannot be created: "+reading(err), nil)
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, address.String(), []byte(text))
	if err != nil {
		return nil, m.execution(v1.PhaseValidate, "the request cannot be created: "+reading(err), nil)
	}
	req.Header = m.api.Header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "toolctl")
	req.Header.Set("Accept", "application/json")
	if stream {
		req.Header.Set("Accept", "text/event-stream")
	}
	resp, err := m.http.Do(req)
	if resp != nil && (err != nil || resp.StatusCode >= 300) {
		defer resp.Body.Close()
	}
	if err != nil {
		return nil, m.unreachable(err)
	}
	if resp.StatusCode >= 300 {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part of the message is better than no message
		return nil, m.refusal(resp.StatusCode, body, resp.Header.Get("Location"))
	}
	return resp, nil
}

// document reads a response that is one JSON document.
func (m *Model) document(in io.Reader, b *Builder, reader Reader) error {
	raw, err := io.ReadAll(in)
	if err != nil {
		return m.broke(err)
	}
	if b.Stream {
		if err := within(raw, false); err != nil {
			return err
		}
		return m.execution(v1.PhaseValidate, m.host+" answers with one JSON document instead of a stream of events: run it without streaming, or check "+m.api.URLVar, nil)
	}
	if err := reader.Read(raw); err != nil {
		return err
	}
	if !b.Ended {
		return errors.New("it has no " + m.api.Needs)
	}
	return nil
}

// events passes the data of each event of a stream to a reader. It stops at the first error, of the reader or in an event.
func (m *Model) events(r io.Reader, b *Builder, reader Reader) error {
	for in := response.NewEvents(r, nil); ; {
		event, err := in.Next()
		switch {
		case errors.Is(err, io.EOF), err == nil && string(event.Data) == "[DONE]":
			return m.complete(b)
		case err != nil:
			return m.broke(err)
		case len(event.Data) == 0:
			continue
		}
		if err := within(event.Data, event.Name == "error"); err != nil {
			return err
		}
		if err := reader.Read(event.Data); err != nil {
			return err
		}
	}
}

// complete returns an error for a stream that broke off.
func (m *Model) complete(b *Builder) error {
	if b.Ended {
		return nil
	}
	return m.execution(v1.PhaseExecute, "the stream of "+m.host+" ended before the reply was complete", nil)
}

// within returns the error in the body of a response with status 200. With whole, the body as a whole describes an
// error. A body that is not valid JSON is also an error.
func within(data []byte, whole bool) error {
	var top struct {
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return err
	}
	if !whole && (len(top.Error) == 0 || string(top.Error) == "null") {
		return nil
	}
	e := apiError(data)
	var of struct {
		Code int `json:"code"`
	}
	if json.Unmarshal(top.Error, &of) == nil && of.Code >= 400 && of.Code < 600 {
		e.Status = of.Code
	}
	return e
}

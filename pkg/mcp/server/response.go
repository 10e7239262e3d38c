package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// response answers one call over HTTP: as one JSON document if the result comes first, and otherwise as an
// event stream. It also becomes a stream after a while if the client can resume streams (MCP specification,
// basic/transports, sending messages). It is safe for concurrent use.
type response struct {
	session *session  // whose client may get requests; nil without a session
	chunked bool      // the response has no Content-Length
	primes  bool      // the client accepts events without data
	primeAt time.Time // if primes is set, when the response becomes a stream

	mu        sync.Mutex
	w         http.ResponseWriter // nil if no client is reading
	control   *http.ResponseController
	replay    *replayBuffer // for the stream; nil if it cannot be resumed
	streaming bool
	ended     bool
	whole     bool // the stream was written completely on its first connection
}

var errAnswered = errors.New("the request was answered")

// notify sends a notification before the result.
func (r *response) notify(method string, params any) error {
	text, err := wire.Request("", method, params)
	if err != nil {
		return err
	}
	return r.send(text, true)
}

// ask sends a request to the client, which answers with a request of its own.
func (r *response) ask(ctx context.Context, q mcp.InputRequest) (json.RawMessage, error) {
	if r.session == nil {
		return nil, errors.New("the client has no session")
	}
	return r.session.ask(ctx, q, func(text []byte) error { return r.send(text, false) })
}

// send adds a message to the stream, and begins the stream if necessary.
func (r *response) send(text []byte, note bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errAnswered
	}
	if !r.streaming {
		r.begin()
	}
	return r.event(text, note)
}

// begin begins the stream. It is called under mu.
func (r *response) begin() {
	r.streaming = true
	if r.session != nil {
		r.replay = r.session.replays.keep(r)
	}
	streamHeaders(r.w)
	if r.replay != nil && r.primes {
		r.retry(retryAfter)
	}
}

func streamHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

// retry writes an event without data, after which the client can resume the stream.
func (r *response) retry(after time.Duration) {
	id := r.replay.id(r.replay.next)
	r.replay.next++
	_, _ = fmt.Fprintf(r.w, "id: %s\nretry: %d\ndata:\n\n", id, after.Milliseconds()) // the next write reports the error
}

// event writes one event, or keeps it if no client is reading. A note may be dropped from the replay.
func (r *response) event(text []byte, note bool) error {
	var id string
	if r.replay != nil {
		id = r.replay.add(text, note)
	}
	if r.w == nil { // the client may reconnect
		return nil
	}
	err := r.write(id, text)
	if err == nil {
		err = r.control.Flush()
	}
	if err != nil && r.replay != nil {
		r.leave()
		err = nil
	}
	return err
}

// write writes an event. It does not copy the text, because results can be large.
func (r *response) write(id string, text []byte) error {
	head := make([]byte, 0, 64)
	if id != "" {
		head = append(append(append(head, "id: "...), id...), '\n')
	}
	for _, part := range [][]byte{append(head, "event: message\ndata: "...), text, []byte("\n\n")} {
		if _, err := r.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func (r *response) flush() {
	_ = r.control.Flush() // the next write reports the error
}

// inSession allows the client of a session to resume the stream, and to be made to poll, until settle is
// called. The response becomes a stream after the given time.
func (r *response) inSession(ctx context.Context, s *session, version string, after time.Duration) (_ context.Context, settle func()) {
	r.session, r.primes = s, version >= primeVersion
	if !r.primes {
		return ctx, func() {}
	}
	r.primeAt = time.Now().Add(after)
	timer := time.AfterFunc(after, r.prime)
	asked := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if at := time.Now().Add(primeAfter); at.Before(r.primeAt) {
			r.primeAt = at
			timer.Reset(primeAfter)
		}
	}
	return mcp.WithPolling(ctx, asked, r.poll), func() { timer.Stop() }
}

// answer writes the outcome of a request.
func (r *response) answer(id json.RawMessage, res answer, failed *jsonrpc.Error, modern bool) {
	a := write(id, res, failed)
	r.end(a.status(modern), a.text)
}

// end writes the response. Later messages are refused.
func (r *response) end(status int, answer []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.primes && !r.streaming && !time.Now().Before(r.primeAt) {
		r.begin() // the timer is late
	}
	r.ended = true
	if !r.streaming {
		writeAnswer(r.w, status, answer)
		return
	}
	_ = r.event(wire.OneLine(answer), false) // the client may have gone
	if r.replay != nil {
		_, again := r.w.(*reader)
		r.whole = r.w != nil && !again
		r.replay.finish()
		r.leave()
	}
}

func writeAnswer(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, no-transform")
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	h.Set("Content-Length", strconv.Itoa(len(body))) // otherwise it is sent in chunks
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have gone
}

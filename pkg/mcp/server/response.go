package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/mcp"
)

// response answers one call over HTTP: as one JSON document when the answer comes first, and
// as a stream of events once anything comes before it (MCP specification, basic/transports,
// sending messages). It may be used by many goroutines at once.
type response struct {
	control *http.ResponseController
	session *httpSession // whose client is asked; nil when it has none

	mu        sync.Mutex
	w         http.ResponseWriter
	streaming bool
	ended     bool
}

var errAnswered = errors.New("the request was answered")

// notify sends a notification before the answer.
func (r *response) notify(_ context.Context, method string, params any) error {
	return r.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// ask sends a request to the client, whose answer comes with a request of its own.
func (r *response) ask(ctx context.Context, q mcp.InputRequest) (json.RawMessage, error) {
	id, answer, forget := r.session.expect()
	defer forget()
	request := map[string]any{"jsonrpc": "2.0", "id": id, "method": q.Method}
	if len(q.Params) > 0 {
		request["params"] = q.Params
	}
	if err := r.send(request); err != nil {
		return nil, err
	}
	select {
	case got := <-answer:
		switch {
		case got.failed != nil:
			return nil, &v1.MCPError{Code: got.failed.Code, Message: got.failed.Message}
		case v1.JSONKind(got.result) != "object":
			return nil, errors.New("the client's answer is not an object")
		}
		return got.result, nil
	case <-ctx.Done():
		err := context.Cause(ctx)
		_ = r.notify(ctx, methodCancelled, map[string]any{"requestId": id, "reason": err.Error()}) // it may be gone
		return nil, err
	}
}

// send puts a message into the stream, which it begins.
func (r *response) send(message any) error {
	text, err := jsontext.Marshal(message)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errAnswered
	}
	if !r.streaming {
		r.streaming = true
		h := r.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no")
		r.w.WriteHeader(http.StatusOK)
	}
	return r.event(text)
}

// event writes one event and what it waits behind.
func (r *response) event(text []byte) error {
	_, err := r.w.Write(append(append([]byte("event: message\ndata: "), text...), "\n\n"...))
	if err == nil {
		err = r.control.Flush()
	}
	return err
}

// end writes the answer. What comes later is refused.
func (r *response) end(status int, answer []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if !r.streaming {
		writeAnswer(r.w, status, answer)
		return
	}
	_ = r.event(oneLine(answer)) // the client is gone
}

func writeAnswer(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, no-transform")
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	h.Set("Content-Length", strconv.Itoa(len(body))) // else it is sent in chunks
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone
}

// clientAnswer is what a client answered to a request.
type clientAnswer struct {
	result json.RawMessage
	failed *jsonrpc.Error
}

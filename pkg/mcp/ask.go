package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// incoming is a request or notification of a server.
type incoming struct {
	method string
	id     json.RawMessage // empty for a notification
	params json.RawMessage
	of     *exchange // whose stream it came in; nil when the session has one for all
	// reply sends the answer to a request.
	reply func(result json.RawMessage, err *jsonrpc.Error)
}

// ask answers a request of the server in place of the SDK, which reads what it gets
// into types of its own: it refuses forms that are valid, and drops what it does not know.
func (s *session) ask(in incoming) {
	ctx, cancel := context.WithCancelCause(context.Background())
	id := string(bytes.TrimSpace(in.id))
	s.mu.Lock()
	if s.asksOff || s.asking[id] != nil {
		s.mu.Unlock()
		cancel(nil)
		return
	}
	if s.asking == nil {
		s.asking = map[string]context.CancelCauseFunc{}
	}
	s.asking[id] = cancel
	s.asks.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.asks.Done()
		defer func() {
			s.mu.Lock()
			delete(s.asking, id)
			s.mu.Unlock()
			cancel(nil)
		}()
		result, err := s.answer(ctx, in)
		if ctx.Err() != nil { // the server does not wait any more
			s.openCalls.Add(-1)
			return
		}
		in.reply(result, err)
	}()
}

// aside runs what no caller waits for; the end of the session does.
func (s *session) aside(f func()) {
	s.mu.Lock()
	off := s.asksOff
	if !off {
		s.asks.Go(f)
	}
	s.mu.Unlock()
	if off { // of a session that was cut nothing takes long
		f()
	}
}

// answer has the client answer a request of the server.
func (s *session) answer(ctx context.Context, in incoming) (result json.RawMessage, failure *jsonrpc.Error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("the hook that answers the server panicked", slog.String("method", in.method), slog.String("panic", fmt.Sprint(p)))
			result, failure = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		}
	}()
	r := s.clientRequest(in.of)
	request := InputRequest{Method: in.method, Params: in.params}
	if r == nil || r.peer.Ask == nil || !r.peer.Can.allow(request) {
		return nil, cannot(request)
	}
	request = request.of(s.upstream, s.masksOf(r), r.peer)
	if out := s.outboxOf(in.of); out != nil {
		out.flush() // what the server said before
	}
	// The request ends with the call that it belongs to, or when the server takes it back.
	both, stop := context.WithCancelCause(r.ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
	defer r.pause()()
	key := "ask-" + strconv.FormatInt(s.upstream.owner.asked.Add(1), 10)
	answers, err := r.peer.Ask(both, map[string]InputRequest{key: request})
	if err != nil {
		return nil, askError(err)
	}
	if v1.JSONKind(answers[key]) != "object" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the client gave no answer"}
	}
	return answers[key], nil
}

// cannot is the answer to what the client did not say that it can do.
func cannot(r InputRequest) *jsonrpc.Error {
	if r.Method == methodElicit {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the client does not support this mode of elicitation"}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the client does not support " + r.Method}
}

// askError is what the server gets of a failure to ask the client.
func askError(err error) *jsonrpc.Error {
	var said *v1.MCPError
	if errors.As(err, &said) && said.Code != 0 {
		return &jsonrpc.Error{Code: said.Code, Message: clip.Bytes(said.Message, maxErrorText)}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: clip.Bytes("the client did not answer: "+err.Error(), maxErrorText)}
}

var errTakenBack = errors.New("the server no longer waits for the answer")

// takeBack ends a request that the server cancelled.
func (s *session) takeBack(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	cancel := s.asking[string(bytes.TrimSpace(p.ID))]
	s.mu.Unlock()
	if cancel != nil {
		cancel(errTakenBack)
	}
}

// endAsks ends every request of the server, and waits.
func (s *session) endAsks() {
	s.mu.Lock()
	s.asksOff = true
	for _, cancel := range s.asking {
		cancel(s.cause)
	}
	s.mu.Unlock()
	s.asks.Wait()
}

// outboxOf is where messages of the server wait that came in the stream of an exchange;
// nil when nobody takes them.
func (s *session) outboxOf(x *exchange) *outbox {
	switch {
	case s.slot != nil && s.slot.key != ownerKey{}:
		return &s.out
	case x != nil:
		return x.out
	}
	return nil
}

// forward passes a notification on to the client.
func (s *session) forward(in incoming, wanted func(*Peer) bool) {
	r, out := s.clientRequest(in.of), s.outboxOf(in.of)
	if r == nil || out == nil || r.peer.Notify == nil || !wanted(r.peer) {
		return
	}
	params := s.masksOf(r).JSON(bytes.Clone(in.params))
	if !out.put(func() { r.peer.Notify(r.ctx, in.method, params) }) {
		s.log.Debug("the client is behind; a message of the server is left out", slog.String("method", in.method))
	}
}

// post answers a request that came in the stream of a response over HTTP.
func (l *httpLink) post(stream *http.Request, id, result json.RawMessage, failure *jsonrpc.Error) {
	body, err := response(id, result, failure)
	if err == nil {
		err = l.tell(stream, body)
	}
	if err != nil {
		l.s.log.Debug("an answer did not reach the server", slog.String("error", l.s.mask(plain(err))))
	}
}

func response(id, result json.RawMessage, failure *jsonrpc.Error) ([]byte, error) {
	m := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   *jsonrpc.Error  `json:"error,omitempty"`
	}{"2.0", id, result, failure}
	return json.Marshal(m)
}

// tell posts a message of ours in the session of another request.
func (l *httpLink) tell(stream *http.Request, body []byte) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, l.to.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	for _, k := range []string{sessionHeader, "Mcp-Protocol-Version", "Authorization"} {
		if v := stream.Header.Get(k); v != "" {
			req.Header.Set(k, v)
		}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := l.withTokens(&sent{l: l}).RoundTrip(req)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		err = errors.New(statusText(resp.StatusCode))
	}
	return errors.Join(err, resp.Body.Close())
}

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// incoming is a request or notification of a server.
type incoming struct {
	wire.Message
	of *exchange // in whose stream it came; nil if the session has one stream for everything
	// reply sends the response to a request.
	reply func(result json.RawMessage, err *wire.Error)
}

// ask passes a request of the server to the client, and sends the client's response to the server.
func (s *session) ask(in incoming) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.mu.Lock()
	off := s.off || !s.asked.Begin(in.ID, cancel)
	if !off {
		s.tasks.Add(1)
	}
	s.mu.Unlock()
	if off {
		cancel(nil)
		return
	}
	go func() {
		defer s.tasks.Done()
		defer func() { s.asked.End(in.ID); cancel(nil) }()
		result, err := s.answer(ctx, in)
		if ctx.Err() != nil { // the server no longer waits
			s.openCalls.Add(-1)
			return
		}
		in.reply(result, err)
	}()
}

// aside runs f in the background. The end of the session waits for f.
func (s *session) aside(f func()) {
	s.mu.Lock()
	off := s.off
	if !off {
		s.tasks.Go(f)
	}
	s.mu.Unlock()
	if off { // in a session that was cut, f returns soon
		f()
	}
}

// answer passes a request of the server to the client and returns the client's response.
func (s *session) answer(ctx context.Context, in incoming) (result json.RawMessage, failure *wire.Error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("the hook that answers the server panicked", slog.String("method", in.Method), slog.String("panic", fmt.Sprint(p)))
			result, failure = nil, &wire.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		}
	}()
	r := s.clientRequest(in.of)
	request := InputRequest{Method: in.Method, Params: in.Body}
	if r == nil || r.peer.Ask == nil || !r.peer.Can.allow(request) {
		return nil, cannot(request)
	}
	request = request.of(s.upstream, s.masksOf(r), r.peer)
	if out := s.outboxOf(in.of); out != nil {
		out.flush() // the client must get the earlier messages of the server first
	}
	// The request ends with the call that it belongs to, or when the server cancels it.
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
		return nil, &wire.Error{Code: jsonrpc.CodeInternalError, Message: "the client did not answer"}
	}
	return answers[key], nil
}

// cannot returns the error for a request that needs a capability which the client does not have.
func cannot(r InputRequest) *wire.Error {
	if r.Method == wire.MethodElicit {
		return &wire.Error{Code: jsonrpc.CodeInvalidParams, Message: "the client does not support this mode of elicitation"}
	}
	return &wire.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the client does not support " + r.Method}
}

// askError returns the error that the server gets when asking the client failed.
func askError(err error) *wire.Error {
	var said *v1.MCPError
	if errors.As(err, &said) && said.Code != 0 {
		return &wire.Error{Code: said.Code, Message: clip.Bytes(said.Message, maxErrorText)}
	}
	return &wire.Error{Code: jsonrpc.CodeInternalError, Message: clip.Bytes("the client did not answer: "+err.Error(), maxErrorText)}
}

var errServerCancelled = errors.New("the server no longer waits for the answer")

// endAsks cancels all requests of the server and waits for their end.
func (s *session) endAsks() {
	s.mu.Lock()
	s.off = true
	cause := s.cause
	for _, cancel := range s.listen {
		cancel()
	}
	s.mu.Unlock()
	s.asked.CancelAll(cause)
	s.tasks.Wait()
}

// outboxOf returns the outbox for messages of the server that came in the stream of an exchange; nil if
// nobody receives them.
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
	params := s.masksOf(r).JSON(bytes.Clone(in.Body))
	if !out.put(func() { r.peer.Notify(r.ctx, in.Method, params) }) {
		s.log.Debug("the client is too slow; dropped a message of the server", slog.String("method", in.Method))
	}
}

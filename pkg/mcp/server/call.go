package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/admission"
)

// Keys of _meta that a client may set on tools/call.
const (
	metaSession  = "toolctl.dev/session"
	metaTurn     = "toolctl.dev/turn"
	metaApproval = "toolctl.dev/approval" // the pending call that this one repeats
	maxMetaText  = 128
)

// callTool answers tools/call.
func (s *Server) callTool(ctx context.Context, req *sdk.CallToolRequest, to channel) (sdk.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.calls.OnStop(func() { cancel(admission.ErrStopping) })()

	offer, ok := s.lookup(ctx, req.Params.Name)
	if !ok {
		return nil, unknownTool(req.Params.Name)
	}
	call := v1.Call{ID: rand.Text(), Tool: offer.Name, Args: req.Params.Arguments}
	if string(call.Args) == "null" {
		call.Args = nil
	}
	var err error
	if call.Session, call.Principal, err = s.session(req); err != nil {
		return nil, err
	}
	if call.Turn, err = metaText(req, metaTurn); err != nil {
		return nil, err
	}
	if call.Approval, err = metaText(req, metaApproval); err != nil {
		return nil, err
	}
	if call.Turn == "" {
		var end func()
		call.Turn, end = s.turns.begin(call.Session)
		defer end()
	}
	ctx, release, err := s.weighed(ctx, req.Extra, req.Params.Arguments)
	if err != nil {
		return nil, err
	}
	defer release()
	began := time.Now()
	res, err := s.call(ctx, call, s.progress(ctx, req, to))
	s.log(ctx, call, offer, res, err, time.Since(began))
	if err != nil && errors.Is(context.Cause(ctx), admission.ErrStopping) {
		return nil, &jsonrpc.Error{Code: codeUnavailable, Message: "the server stops and has cancelled the call: whether it was carried out is not known. Find out before you make it again"}
	}
	var missing *v1.NotFoundError
	switch {
	case errors.As(err, &missing): // it went between the list and the call
		return nil, unknownTool(req.Params.Name)
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case isForClient(err):
		return nil, relayed(err)
	}
	return s.bounded(ctx, req.Params.Name, newResult(offer.Tool, res, err, req.ProtocolVersion())), nil
}

// call keeps a panic of the catalog within its call.
func (s *Server) call(ctx context.Context, call v1.Call, progress func(Progress)) (res v1.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.opts.Logger.ErrorContext(ctx, "panic in a call", slog.String("call_id", call.ID), slog.Any("panic", p))
			res, err = v1.Result{}, &v1.ExecutionError{Tool: call.Tool, Phase: v1.PhaseExecute, Message: "internal error; call " + call.ID + " in the server's log"}
		}
	}()
	return s.catalog.Call(ctx, call, progress)
}

// progress relays reports to the client that asked for them, each before the next and
// all before the answer: they are written as they come, with the answer's own stream.
func (s *Server) progress(ctx context.Context, req *sdk.CallToolRequest, to channel) func(Progress) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	first := &round{ctx, to, token}
	return func(p Progress) {
		at, ok := current(ctx, first)
		if !ok || at.progress == nil { // the client is between two rounds, or asked no more
			return
		}
		err := at.to.notify(at.ctx, "notifications/progress", &sdk.ProgressNotificationParams{ProgressToken: at.progress, Progress: p.Progress, Total: p.Total, Message: p.Message})
		if err != nil {
			s.opts.Logger.DebugContext(ctx, "progress did not reach the client", slog.Any("error", err))
		}
	}
}

// codeUnavailable is in the range that JSON-RPC 2.0, section 5.1, leaves to servers.
const codeUnavailable = -32000

func unknownTool(name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", clip.Bytes(name, 100))}
}

// session returns what policies count in, and who asks.
func (s *Server) session(req *sdk.CallToolRequest) (session, principal string, err error) {
	principal = principalOf(req.Extra)
	if id := req.Session.ID(); id != "" {
		return mcpSession(id), principal, nil
	}
	if req.Extra == nil { // no HTTP: the process serves one client
		return "stdio-" + hash(s.run), "", nil
	}
	key, err := metaText(req, metaSession)
	if err != nil {
		return "", "", err
	}
	session = "principal-" + noSlash.Replace(principal)
	if principal == "" {
		session = "anonymous-" + hash(s.run)
	}
	if key != "" {
		session += "/" + key
	}
	return session, principal, nil
}

// noSlash escapes what ends the name of a principal in that of a session.
var noSlash = strings.NewReplacer("%", "%25", "/", "%2F")

// mcpSession names an MCP session. Its id is a secret, so it is a hash of that.
func mcpSession(id string) string { return "mcp-" + hash(id) }

func metaText(req *sdk.CallToolRequest, key string) (string, error) {
	v, ok := req.Params.Meta[key]
	if !ok || v == nil {
		return "", nil
	}
	text, ok := v.(string)
	if !ok || len(text) > maxMetaText {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("_meta %q: expected a text of at most %d bytes", key, maxMetaText)}
	}
	return text, nil
}

// log writes one line on a call. Arguments and results stay out of it.
func (s *Server) log(ctx context.Context, call v1.Call, o Offer, res v1.Result, err error, took time.Duration) {
	if s.opts.AccessLog == nil {
		return
	}
	level, attrs := slog.LevelInfo, []slog.Attr{
		slog.String("call_id", call.ID), slog.String("tool", o.Name), slog.String("session", call.Session),
		slog.String("status", res.Status), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
	}
	if call.Principal != "" {
		attrs = append(attrs, slog.String("principal", call.Principal))
	}
	if err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error_type", v1.NewResultError(err).Type))
	}
	s.opts.AccessLog.LogAttrs(ctx, level, "call", attrs...)
}

package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// Keys in _meta that a client may set for tools/call.
const (
	metaSession  = "toolctl.dev/session"
	metaTurn     = "toolctl.dev/turn"
	metaApproval = "toolctl.dev/approval" // the pending call that this call repeats
	maxMetaText  = 128
)

// callTool answers tools/call.
func (s *Server) callTool(ctx context.Context, r *request) (res answer, err error) {
	name, args, wrapped, err := s.offers(r.toolset).target(r)
	if wrapped && err != nil {
		return failure(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.calls.OnStop(func() { cancel(admission.ErrStopping) })()

	offer, ok := lookup(ctx, s, r.toolset, name, func(o *offers) (offered, bool) { known, ok := o.byName[name]; return known, ok })
	finds := name == v1.FindTools && s.offers(r.toolset).offersBuiltin(r, name) && (!ok || !wrapped)
	if finds {
		offer.Name = v1.FindTools
	} else if !ok {
		return s.unknown(ctx, r, name, wrapped)
	}
	call := v1.Call{ID: rand.Text(), Tool: offer.Name, Args: args, Principal: r.principal}
	if string(call.Args) == "null" {
		call.Args = nil
	}
	if call.Session, err = s.sessionOf(r); err != nil {
		return nil, err
	}
	if finds {
		return s.findTools(ctx, r, call)
	}
	if call.Turn, err = metaText(r, metaTurn); err != nil {
		return nil, err
	}
	if call.Approval, err = metaText(r, metaApproval); err != nil {
		return nil, err
	}
	if call.Turn == "" {
		var end func()
		call.Turn, end = s.turns.begin(call.Session)
		defer end()
	}
	ctx, release, err := s.memory(ctx, r)
	if err != nil {
		return nil, err
	}
	defer release()
	began := time.Now()
	finish := func(res v1.Result, err error) (answer, error) {
		s.log(ctx, r, call, offer.Offer, res, err, time.Since(began))
		return s.outcome(ctx, r, name, wrapped, offer.Offer, res, err)
	}
	defer func() { // a panic of the catalog must end only its call
		if p := recover(); p != nil {
			s.opts.Logger.ErrorContext(ctx, "panic in a call", slog.String("call_id", call.ID), slog.Any("panic", p))
			res, err = finish(v1.Result{}, &v1.ExecutionError{Tool: call.Tool, Phase: v1.PhaseExecute, Message: "internal error; call " + call.ID + " in the server's log"})
		}
	}()
	return finish(s.catalog.Call(ctx, call, s.progress(ctx, r)))
}

// outcome returns the client's response for the outcome of a call.
func (s *Server) outcome(ctx context.Context, r *request, name string, wrapped bool, offer Offer, res v1.Result, err error) (answer, error) {
	var missing *v1.NotFoundError
	switch {
	case err != nil && errors.Is(context.Cause(ctx), admission.ErrStopping):
		return nil, &jsonrpc.Error{Code: codeUnavailable, Message: "the server is stopping and cancelled the call: the tool may have run. Find out before you repeat the call"}
	case errors.As(err, &missing): // the tool was removed between the list and the call
		return s.unknown(ctx, r, name, wrapped)
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case isForClient(err):
		return nil, relayed(err)
	}
	out := newResult(offer.Tool, res, err, r.version)
	var invalid *v1.ValidationError
	if wrapped && errors.As(err, &invalid) && invalid.Type == v1.ArgsInvalid {
		out.expect(offer.Tool)
	}
	return s.bounded(ctx, name, out), nil
}

// progress passes progress reports on to the client if it requested them, in order and before the response,
// because they are written at once to the same stream.
func (s *Server) progress(ctx context.Context, r *request) func(mcp.Progress) {
	first := r.progressToken()
	if first == nil {
		return nil
	}
	return func(p mcp.Progress) {
		at, ok := current(ctx, r)
		if !ok || at.progressToken() == nil { // the client is between two rounds, or no longer wants reports
			return
		}
		params := struct {
			Token json.RawMessage `json:"progressToken"`
			mcp.Progress
		}{at.progressToken(), p}
		if err := at.to.notify("notifications/progress", params); err != nil {
			s.opts.Logger.DebugContext(ctx, "progress did not reach the client", slog.Any("error", err))
		}
	}
}

// codeUnavailable is in the range that JSON-RPC 2.0, section 5.1, reserves for servers.
const codeUnavailable = -32000

func unknownTool(name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", clip.Bytes(name, 100))}
}

// sessionOf returns the session in which policies count a call.
func (s *Server) sessionOf(r *request) (string, error) {
	switch {
	case r.session != nil && r.session.id != "":
		return wire.SessionName(r.session.id), nil
	case r.header == nil: // stdio: the process serves one client
		return "stdio-" + wire.Hash(s.run), nil
	}
	key, err := metaText(r, metaSession)
	if err != nil {
		return "", err
	}
	session := "principal-" + noSlash.Replace(r.principal)
	if r.principal == "" {
		session = "anonymous-" + wire.Hash(s.run)
	}
	if key != "" {
		session += "/" + key
	}
	return session, nil
}

// noSlash escapes the separator that ends the principal in the name of a session.
var noSlash = strings.NewReplacer("%", "%25", "/", "%2F")

func metaText(r *request, key string) (string, error) {
	text, ok := r.Meta.Text(key)
	if raw := r.Meta.Get(key); string(raw) == "null" {
		return "", nil
	}
	if !ok || len(text) > maxMetaText {
		return "", invalidParams(fmt.Sprintf("_meta %q: expected a text of at most %d bytes", key, maxMetaText))
	}
	return text, nil
}

// log writes one line for a call. It does not log arguments and results.
func (s *Server) log(ctx context.Context, r *request, call v1.Call, o Offer, res v1.Result, err error, took time.Duration) {
	if s.opts.AccessLog == nil {
		return
	}
	level, attrs := slog.LevelInfo, []slog.Attr{
		slog.String("call_id", call.ID), slog.String("tool", o.Name), slog.String("session", call.Session),
		slog.String("status", res.Status), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
	}
	if r.toolset != "" {
		attrs = append(attrs, slog.String("toolset", r.toolset))
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

// isForClient reports whether the client itself can act on a server's error and call again: it lacks a
// capability, or a person must visit an address first (MCP specification, client/elicitation).
func isForClient(err error) bool {
	var upstream *v1.MCPError
	return errors.As(err, &upstream) && (upstream.Code == wire.CodeNeedsCapability || upstream.Code == wire.CodeNeedsURL)
}

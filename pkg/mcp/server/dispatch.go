package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// The MCP methods that a server answers.
const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodPing       = "ping"
	methodCall       = "tools/call"
	methodListen     = "subscriptions/listen"
)

// answer is the result of a request. The largest is result, for tools/call.
type answer interface {
	// mark marks the result as complete and names its server, for a client of 2026-07-28.
	mark(by *sdk.Implementation)
}

// base holds the members common to all results.
type base struct {
	Meta map[string]any `json:"_meta,omitempty"`
	Type string         `json:"resultType,omitempty"`
}

func (b *base) mark(by *sdk.Implementation) {
	if b.Type == "" {
		b.Type = "complete"
	}
	if b.Meta == nil {
		b.Meta = map[string]any{}
	}
	b.Meta[wire.MetaServer] = by
}

// method describes how to answer a request.
type method struct {
	old, modern bool // the protocol versions that have the method
	session     bool // useful only in a session
	call        bool // may take as long as a call, and may ask the client
	do          handler
}

type handler = func(*Server, context.Context, *request) (answer, error)

var methods map[string]method

func init() { // avoids an initialization cycle, because the handlers refer to the table
	methods = map[string]method{
		methodInitialize:           {old: true, do: (*Server).initialize},
		methodPing:                 {old: true, do: func(*Server, context.Context, *request) (answer, error) { return &base{}, nil }},
		methodDiscover:             {modern: true, do: (*Server).discover},
		"logging/setLevel":         {old: true, session: true, do: (*Server).setLevel},
		"resources/subscribe":      {old: true, session: true, do: (*Server).subscribe},
		"resources/unsubscribe":    {old: true, session: true, do: (*Server).unsubscribe},
		methodListen:               {modern: true, do: (*Server).listen},
		"tools/list":               {old: true, modern: true, do: list("tools")},
		methodCall:                 {old: true, modern: true, call: true, do: (*Server).callTool},
		"prompts/list":             {old: true, modern: true, do: list("prompts")},
		"prompts/get":              {old: true, modern: true, call: true, do: (*Server).getPrompt},
		"resources/list":           {old: true, modern: true, do: list("resources")},
		"resources/templates/list": {old: true, modern: true, do: list("resourceTemplates")},
		"resources/read":           {old: true, modern: true, call: true, do: (*Server).readResource},
		"completion/complete":      {old: true, modern: true, do: (*Server).complete},
	}
}

// dispatch answers a request with a result or a JSON-RPC error. A panic ends only that request.
func (s *Server) dispatch(ctx context.Context, r *request) (res answer, failed *jsonrpc.Error) {
	ctx, op := s.observe(ctx, r)
	var err error
	defer func() { op.end(ctx, res, err) }()
	defer func() {
		if p := recover(); p != nil {
			s.opts.Logger.ErrorContext(ctx, "panic while a request was served", slog.String("method", r.Method), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			failed = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			res, err = nil, failed
		}
	}()
	m, ok := methods[r.Method]
	switch {
	case !ok:
		err = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", clip.Bytes(r.Method, 100))}
	case r.modern() && !m.modern, !r.modern() && !m.old:
		err = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%q is not a method of this protocol version", r.Method)}
	case m.session && r.session == nil:
		err = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: r.Method + " needs a session"}
	default:
		if err = r.checkMeta(); err != nil {
			break
		}
		var p *mcp.Peer
		if m.call {
			p = s.peer(r)
		}
		switch {
		case p != nil && p.Modern && p.Can != (mcp.Capabilities{}):
			res, err = s.suspend(ctx, r, p, m.do)
		case m.call:
			res, err = s.carryOut(ctx, r, p, m.do)
		default:
			res, err = m.do(s, ctx, r)
		}
	}
	if err == nil {
		if r.modern() {
			res.mark(s.impl())
		}
		return res, nil
	}
	if !errors.As(err, &failed) {
		failed = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return nil, failed
}

// said handles a notification of a client.
func (s *Server) said(m wire.Message, session *session) {
	if session == nil {
		return
	}
	switch m.Method {
	case wire.MethodCancelled:
		session.running.Cancel(m, context.Canceled)
	case "notifications/roots/list_changed":
		session.background(func() { s.catalog.RootsChanged(session.key) })
	}
}

// reply is the message that answers a request.
type reply struct {
	text   []byte
	failed *jsonrpc.Error
	// uncounted means that a call was refused because the store cannot be reached.
	uncounted bool
}

// write returns the message for a result or an error.
func write(id json.RawMessage, res answer, failed *jsonrpc.Error) *reply {
	a := &reply{failed: failed}
	if r, ok := res.(*result); ok {
		a.uncounted = r.uncounted
	}
	var b bytes.Buffer
	if wire.Answer(&b, id, res, failed) != nil {
		b.Reset()
		a.failed = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error: the response cannot be written"}
		_ = wire.Answer(&b, id, nil, a.failed) // an error has a JSON form
	}
	a.text = b.Bytes()
	return a
}

// status returns the HTTP status of the response (MCP specification 2026-07-28, basic/transports).
func (a *reply) status(modern bool) int {
	switch {
	case a.uncounted:
		return http.StatusServiceUnavailable
	case a.failed == nil || !modern:
		return http.StatusOK
	}
	switch a.failed.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, sdk.CodeUnsupportedProtocolVersion, sdk.CodeMissingRequiredClientCapabilities, sdk.CodeHeaderMismatch:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// identify determines the protocol version of a request and the capabilities of its client. Over HTTP, the
// version in the headers has been compared with that of the request before.
func (s *Server) identify(r *request) *jsonrpc.Error {
	said, ok := r.Meta.Text(wire.MetaVersion)
	if !ok {
		return invalidParams("_meta " + wire.MetaVersion + ": expected a string")
	}
	if !wire.IsModern(said) {
		if r.session == nil {
			return nil
		}
		if r.version, r.can = r.session.begun(); r.version == "" && r.Method != methodInitialize && r.Method != methodPing {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("method %q is invalid during session initialization", clip.Bytes(r.Method, 100))}
		}
		return nil
	}
	r.version = said
	if said != wire.ModernVersion {
		data, _ := json.Marshal(sdk.UnsupportedProtocolVersionData{Supported: wire.Versions, Requested: said})
		return &jsonrpc.Error{Code: sdk.CodeUnsupportedProtocolVersion, Message: "unsupported protocol version", Data: data}
	}
	var err error
	if r.can, err = mcp.CapabilitiesOf(r.Meta.Get(wire.MetaCapabilities)); err != nil {
		return invalidParams(fmt.Sprintf("missing or invalid _meta field %q", wire.MetaCapabilities))
	}
	if raw := r.Meta.Get(wire.MetaClient); raw != nil && json.Unmarshal(raw, &sdk.Implementation{}) != nil {
		return invalidParams(fmt.Sprintf("invalid _meta field %q", wire.MetaClient))
	}
	return nil
}

// welcome is an InitializeResult, and a DiscoverResult.
type welcome struct {
	*cacheable
	Capabilities json.RawMessage     `json:"capabilities"`
	Instructions string              `json:"instructions,omitempty"`
	Version      string              `json:"protocolVersion,omitempty"`
	Info         *sdk.Implementation `json:"serverInfo,omitempty"`
	Versions     []string            `json:"supportedVersions,omitempty"`
	base
}

// cacheable states who may cache a list, and for how long (MCP 2026-07-28).
type cacheable struct {
	TTL   int    `json:"ttlMs"`
	Scope string `json:"cacheScope"`
}

func (s *Server) cacheable(scope string) *cacheable {
	if s.private.Load() {
		scope = "private"
	}
	return &cacheable{Scope: scope}
}

var capabilities = json.RawMessage(`{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}}`)

// statelessCapabilities are the capabilities without those that need a session.
var statelessCapabilities = json.RawMessage(`{"completions":{},"prompts":{},"resources":{},"tools":{}}`)

// initialize begins the session that the transport has created.
func (s *Server) initialize(ctx context.Context, r *request) (answer, error) {
	asked, err := r.text("protocolVersion")
	if err != nil {
		return nil, err
	}
	can, err := mcp.CapabilitiesOf(orNull(r.Params.Get("capabilities")))
	if err != nil {
		return nil, invalidParams("capabilities: " + err.Error())
	}
	version := wire.Versions[1]
	if slices.Contains(wire.Versions[1:], asked) {
		version = asked
	}
	offered := capabilities
	if r.session == nil { // see HTTPOptions.Stateless
		offered = statelessCapabilities
	} else if !r.session.begin(version, can) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "duplicate initialize"}
	}
	return &welcome{Version: version, Capabilities: offered, Info: s.impl(), Instructions: s.instructions(ctx, r)}, nil
}

func (s *Server) discover(ctx context.Context, r *request) (answer, error) {
	return &welcome{Versions: wire.Versions, Capabilities: capabilities, Instructions: s.instructions(ctx, r), cacheable: s.cacheable("public")}, nil
}

// setLevel answers logging/setLevel (MCP specification, server/utilities/logging).
func (s *Server) setLevel(_ context.Context, r *request) (answer, error) {
	level, err := r.text("level")
	if err != nil || !slices.Contains(wire.Levels, level) {
		return nil, invalidParams("level: expected debug, info, notice, warning, error, critical, alert or emergency, got " + clip.Bytes(level, 100))
	}
	r.session.setLevel(level)
	s.catalog.SetLogLevel(r.session.key, level)
	return &base{}, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

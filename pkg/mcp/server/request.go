package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// request is a request of a client that is being answered.
type request struct {
	wire.Message
	session   *session // nil for a request of 2026-07-28, which needs no session
	toolset   string   // the toolset in the address; "" for /mcp and over stdio
	version   string   // the protocol version
	principal string
	header    http.Header // nil over stdio
	to        channel
	can       mcp.Capabilities // capabilities of the client
	body      *admission.Body  // the HTTP body; nil over stdio
}

// channel sends messages to the client of a request while the request is being answered.
type channel interface {
	// notify sends a notification before the response.
	notify(method string, params any) error
	// ask sends a request unchanged and returns the unchanged response.
	ask(ctx context.Context, q mcp.InputRequest) (json.RawMessage, error)
}

func (r *request) modern() bool { return wire.IsModern(r.version) }

// text returns a string parameter, or an error if the parameter has another type.
func (r *request) text(name string) (string, error) {
	text, ok := r.Params.Text(name)
	if !ok {
		return "", invalidParams(name + ": expected a string")
	}
	return text, nil
}

// read decodes a parameter if it exists.
func (r *request) read(name string, into any) error {
	raw := r.Params.Get(name)
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return invalidParams(name + ": " + err.Error())
	}
	return nil
}

// progressToken returns the token for progress reports; nil if the client wants no reports.
func (r *request) progressToken() json.RawMessage {
	token := r.Meta.Get("progressToken")
	if len(token) == 0 || token[0] != '"' && (token[0] < '0' || token[0] > '9') && token[0] != '-' {
		return nil
	}
	return token
}

// checkMeta returns an error for a number in _meta that a double cannot represent.
func (r *request) checkMeta() error {
	for _, m := range r.Meta {
		var value any
		var far *json.UnmarshalTypeError
		if len(m.Value) > 0 && m.Value[0] != '"' && errors.As(json.Unmarshal(m.Value, &value), &far) {
			return invalidParams("the " + clip.Bytes(far.Value, 100) + " is beyond the range of a double: at most 1.8e308; send it as a string")
		}
	}
	return nil
}

func invalidParams(text string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text}
}

// peer returns the client of a request; nil if it wants nothing but the response.
func (s *Server) peer(r *request) *mcp.Peer {
	if !r.modern() && r.session == nil { // see HTTPOptions.Stateless
		return nil
	}
	p := &mcp.Peer{Can: r.can, Modern: r.modern()}
	p.Notify = notify(func() (channel, bool) { return r.to, true })
	if p.Modern {
		p.LogLevel, _ = r.Meta.Text(wire.MetaLogLevel)
		if !slices.Contains(wire.Levels, p.LogLevel) {
			p.LogLevel = ""
		}
		key, _ := r.Meta.Text(metaSession)
		p.Key = "each-" + wire.Hash(r.principal, key, r.toolset)
	} else {
		p.Key, p.LogLevel = r.session.key, r.session.logLevel()
		p.Ask = func(ctx context.Context, all map[string]mcp.InputRequest) (map[string]json.RawMessage, error) {
			return askAll(ctx, r.to, all)
		}
	}
	if p.Can == (mcp.Capabilities{}) && p.LogLevel == "" {
		return nil
	}
	return p
}

// carryOut answers a request that may take as long as a call, within the limits for calls. Code that it
// calls finds the client, if any, in the context.
func (s *Server) carryOut(ctx context.Context, r *request, p *mcp.Peer, do handler) (answer, error) {
	t, err := s.calls.Begin(r.principal)
	if err != nil {
		return nil, &jsonrpc.Error{Code: codeUnavailable, Message: err.Error()}
	}
	defer t.End()
	if p == nil {
		return do(s, ctx, r)
	}
	if ask := p.Ask; ask != nil {
		p.Ask = func(ctx context.Context, all map[string]mcp.InputRequest) (answers map[string]json.RawMessage, err error) {
			err = t.WhileWaiting(ctx, func() error { answers, err = ask(ctx, all); return err })
			return answers, err
		}
	}
	if p.Can.Form {
		ctx = callctx.WithAsker(ctx, s.asker(p, r.principal))
	}
	return do(s, mcp.WithPeer(ctx, p), r)
}

// askTimeout is how long a client may take to answer a request of the server.
const askTimeout = 10 * time.Minute

// askAll sends all requests concurrently to a client with a session.
func askAll(ctx context.Context, to channel, all map[string]mcp.InputRequest) (map[string]json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errNoAnswer)
	defer cancel()
	answers := make(map[string]json.RawMessage, len(all))
	var mu sync.Mutex
	var first error
	var asking sync.WaitGroup
	for name, q := range all {
		asking.Go(func() {
			answer, err := to.ask(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil {
				first = err
				cancel() // the other answers are no longer needed
			}
			answers[name] = answer
		})
	}
	asking.Wait()
	if first != nil {
		return nil, first
	}
	return answers, nil
}

// notify returns the hook that passes notifications on. where returns the channel to use; false without a
// channel. It is not an error if a notification does not reach a client that has gone.
func notify(where func() (channel, bool)) func(context.Context, string, json.RawMessage) {
	return func(_ context.Context, method string, params json.RawMessage) {
		to, ok := where()
		if !ok || method != "notifications/message" && method != "notifications/elicitation/complete" {
			return
		}
		_ = to.notify(method, params)
	}
}

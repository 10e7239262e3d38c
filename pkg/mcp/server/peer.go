package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/pkg/mcp"
)

// asked is a request that may lead to questions to its client.
type asked struct {
	session  *sdk.ServerSession
	to       channel
	extra    *sdk.RequestExtra
	meta     map[string]any
	can      mcp.Capabilities
	version  string
	progress any // the token
	// What a later round of the request repeats.
	method, name string
	args         any
	state        string // of the round before; empty for the first
}

func askedBy[P sdk.RequestParams](r *sdk.ServerRequest[P], to channel, method, name string, args any, state string) asked {
	meta := r.Params.GetMeta()
	can, ok := declared(meta)
	if !ok {
		can = capabilities(r.ClientCapabilities())
	}
	return asked{session: r.Session, to: to, extra: r.Extra, meta: meta, can: can, version: r.ProtocolVersion(),
		progress: r.Params.GetProgressToken(), method: method, name: name, args: args, state: state}
}

func (a *asked) principal() string {
	if a.extra != nil && a.extra.TokenInfo != nil {
		return a.extra.TokenInfo.UserID
	}
	return ""
}

// metaLogLevel is the level of the log messages that a client of 2026-07-28 wants.
const metaLogLevel = "io.modelcontextprotocol/logLevel"

// peer returns the client of a request; nil when it wants nothing but the answer.
func (s *Server) peer(a *asked) *mcp.Peer {
	p := &mcp.Peer{Can: a.can, Modern: isModern(a.version)}
	if p.Modern {
		p.LogLevel, _ = a.meta[metaLogLevel].(string)
		if !isLevel(p.LogLevel) {
			p.LogLevel = ""
		}
		if p.Can == (mcp.Capabilities{}) && p.LogLevel == "" {
			return nil
		}
		key, _ := a.meta[metaSession].(string)
		p.Key = "each-" + hash(a.principal(), key)
		p.Notify = notify(func(ctx context.Context) (context.Context, channel, bool) { return ctx, a.to, true })
		return p
	}
	if a.extra != nil && a.session.ID() == "" { // see HTTPOptions.Stateless
		return nil
	}
	if p.Can == (mcp.Capabilities{}) && !s.wantsLogs(a.session) {
		return nil
	}
	f := s.follow(a.session)
	if f == nil {
		return nil
	}
	p.Key, p.LogLevel = f.key, f.logLevel()
	p.Ask = func(ctx context.Context, all map[string]mcp.InputRequest) (map[string]json.RawMessage, error) {
		return askAll(ctx, a.to, all)
	}
	p.Notify = notify(func(ctx context.Context) (context.Context, channel, bool) { return ctx, a.to, true })
	return p
}

// Methods that a server asks its client with.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// askTimeout is how long a client may take to answer.
const askTimeout = 10 * time.Minute

// askAll asks a client that has a session, all at once.
func askAll(ctx context.Context, to channel, all map[string]mcp.InputRequest) (map[string]json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errors.New("the client did not answer in time"))
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
				cancel() // the others are asked in vain
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

// notify makes the hook that passes notifications on. where says over which channel;
// false when there is none now.
func notify(where func(context.Context) (context.Context, channel, bool)) func(context.Context, string, json.RawMessage) {
	return func(ctx context.Context, method string, params json.RawMessage) {
		ctx, to, ok := where(ctx)
		if !ok {
			return
		}
		// What does not reach a client that went away is nobody's error.
		switch method {
		case "notifications/message":
			var m struct {
				Meta   map[string]any   `json:"_meta"`
				Level  sdk.LoggingLevel `json:"level"`
				Logger string           `json:"logger"`
				Data   json.RawMessage  `json:"data"`
			}
			if json.Unmarshal(params, &m) != nil || !isLevel(string(m.Level)) {
				return
			}
			if len(m.Data) == 0 {
				m.Data = json.RawMessage("null")
			}
			_ = to.notify(ctx, method, &sdk.LoggingMessageParams{Meta: m.Meta, Level: m.Level, Logger: m.Logger, Data: m.Data})
		case "notifications/elicitation/complete":
			var m sdk.ElicitationCompleteParams
			if json.Unmarshal(params, &m) == nil {
				_ = to.notify(ctx, method, &m)
			}
		}
	}
}

// isLevel reports whether a level is one of RFC 5424, as MCP writes them.
func isLevel(level string) bool {
	return level != "" && strings.Contains(" debug info notice warning error critical alert emergency ", " "+level+" ")
}

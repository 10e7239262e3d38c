package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync/atomic"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// Peer is the client on whose behalf a server is asked: who answers what the server
// asks in turn, and who gets what it says. It travels in the context of a call, see
// [WithPeer]. Without one, a server is told that its client can do nothing of that.
//
// A client of MCP 2025-11-25 or older has a session with each server, of its own and
// told what the client can do; so has one that wants log messages. Clients of
// 2026-07-28 share the session of a server that speaks it too, where each request says
// what its client can do; with an older server each of their calls has a session to
// itself, which is kept for their next call.
type Peer struct {
	// Key names the client's session. Peers of one key may use one session with a server.
	Key string
	// Modern says that the client speaks MCP 2026-07-28 or later: nothing reaches it but
	// through a call.
	Modern bool
	// Can is what the client can do.
	Can Capabilities
	// LogLevel is the least level of the log messages that the client wants, one of RFC
	// 5424 as MCP writes them. Default: none are wanted.
	LogLevel string
	// Ask has the client answer what a server asks, all of it at once, and returns the
	// answer to each. A [v1.MCPError] is what the client answered in place of one. The
	// context is that of the call which the server asks for, as far as that is known.
	Ask func(ctx context.Context, asked map[string]InputRequest) (map[string]json.RawMessage, error)
	// Names says that what servers ask is passed on as it came, since the Peer says itself who
	// asks: it is another process. Default: what a form says begins with the name of its server.
	Names bool
	// Notify passes a notification on: one after the other, and those of a call before
	// the call returns.
	Notify func(ctx context.Context, method string, params json.RawMessage)
}

// InputRequest is what a server asks of the client (MCP 2026-07-28, InputRequest).
type InputRequest struct {
	// Method is elicitation/create, sampling/createMessage or roots/list.
	Method string `json:"method"`
	// Params are as they came.
	Params json.RawMessage `json:"params,omitempty"`
}

// masked is the request as the client gets it. Schemas say names alone, which rules do not mask.
func (r InputRequest) masked(m *redact.Masker) InputRequest {
	var members map[string]json.RawMessage
	if m.Empty() || json.Unmarshal(r.Params, &members) != nil {
		return r
	}
	schemas := map[string]json.RawMessage{}
	for _, name := range []string{"requestedSchema", "tools"} {
		if raw, ok := members[name]; ok {
			schemas[name] = m.Bare().JSON(raw)
			delete(members, name)
		}
	}
	rest, err := json.Marshal(members)
	masked := map[string]json.RawMessage{}
	if err != nil || json.Unmarshal(m.JSON(rest), &masked) != nil {
		return InputRequest{Method: r.Method} // cannot happen: it was JSON
	}
	maps.Copy(masked, schemas)
	r.Params, _ = json.Marshal(masked)
	return r
}

// of is the request as its client gets it: masked, and what a person reads says who asks.
func (r InputRequest) of(u *upstream, m *redact.Masker, p *Peer) InputRequest {
	r = r.masked(m)
	if r.Method == wire.MethodElicit && (p == nil || !p.Names) {
		r.Params = u.signed(r.Params)
	}
	return r
}

// signed adds the name of the server to the message of a form or a URL, so that it cannot pass for that of another server
// or of toolctl. Other members that a client could take for the message are removed, and the rest stays as it is.
func (u *upstream) signed(params json.RawMessage) json.RawMessage {
	members, ok := wire.ParseObject(params)
	if !ok {
		return params // no client takes it for a form
	}
	var message string
	var out wire.Object
	at := -1 // the place of the message in out
	for _, m := range members {
		if !strings.EqualFold(m.Name, "message") {
			out = append(out, m)
			continue
		}
		if m.Name == "message" {
			_ = json.Unmarshal(m.Value, &message) // a value of another type is no message
		}
		if at < 0 {
			at, out = len(out), append(out, wire.Member{Name: "message"})
		}
	}
	if at < 0 {
		at, out = len(out), append(out, wire.Member{Name: "message"})
	}
	out[at].Value = jsontext.Of(u.asks(message))
	return out.JSON()
}

// asks is a message with the server's name. Lines of its own are quoted: none begins as ours do.
func (u *upstream) asks(message string) string {
	name := u.key.Name
	if u.key.Namespace != v1.DefaultNamespace {
		name = u.key.Namespace + "/" + name
	}
	lines := strings.FieldsFunc(inspect.Show(message), func(c rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", c) })
	if len(lines) > 1 {
		return "Server " + name + " asks:\n> " + strings.Join(lines, "\n> ")
	}
	return "Server " + name + " asks: " + strings.Join(lines, "")
}

// signedAll is signed for the addresses that an error says a person must visit first (MCP specification,
// client/elicitation).
func (u *upstream) signedAll(err error) error {
	var said *v1.MCPError
	var data map[string]json.RawMessage
	var all []json.RawMessage
	if !errors.As(err, &said) || said.Code != wire.CodeNeedsURL || json.Unmarshal(said.Data, &data) != nil || json.Unmarshal(data["elicitations"], &all) != nil {
		return err
	}
	for i := range all {
		all[i] = u.signed(all[i])
	}
	data["elicitations"] = jsontext.Of(all)
	said.Data = jsontext.Of(data)
	return err
}

// Capabilities are what a client can do for a server (MCP specification, ClientCapabilities).
type Capabilities struct {
	// Form and URL are the modes of elicitation.
	Form, URL bool
	// Sampling is of messages; Tools and Context are what may go with them.
	Sampling, SamplingTools, SamplingContext bool
	// Roots are listed; with RootsChanged the client says when they change.
	Roots, RootsChanged bool
}

// allow reports whether the client can answer a request.
func (c Capabilities) allow(r InputRequest) bool {
	switch r.Method {
	case wire.MethodElicit:
		var p struct {
			Mode string `json:"mode"`
		}
		_ = json.Unmarshal(r.Params, &p) // a mode of another type is none
		return p.Mode == "url" && c.URL || p.Mode != "url" && c.Form
	case wire.MethodSample:
		return c.Sampling
	case wire.MethodRoots:
		return c.Roots
	}
	return false
}

// wire is what a server is told.
func (c Capabilities) wire() map[string]any {
	type object = map[string]any
	m := object{}
	put := func(in object, name string, on bool) object {
		if on {
			o := object{}
			in[name] = o
			return o
		}
		return object{}
	}
	e := put(m, "elicitation", c.Form || c.URL)
	put(e, "form", c.Form)
	put(e, "url", c.URL)
	s := put(m, "sampling", c.Sampling)
	put(s, "tools", c.SamplingTools)
	put(s, "context", c.SamplingContext)
	if r := put(m, "roots", c.Roots); c.RootsChanged {
		r["listChanged"] = true
	}
	return m
}

// CapabilitiesOf reads what a client says that it can do (MCP specification, ClientCapabilities).
func CapabilitiesOf(raw json.RawMessage) (can Capabilities, err error) {
	type object = map[string]json.RawMessage
	var c struct {
		Elicitation, Sampling, Experimental, Extensions object
		Roots                                           *struct{ ListChanged bool }
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return can, err
	}
	if e := c.Elicitation; e != nil {
		_, can.URL = e["url"]
		_, form := e["form"]
		can.Form = form || !can.URL // clients of 2025-06-18 name no mode
	}
	if m := c.Sampling; m != nil {
		can.Sampling = true
		_, can.SamplingTools = m["tools"]
		_, can.SamplingContext = m["context"]
	}
	if c.Roots != nil {
		can.Roots, can.RootsChanged = true, c.Roots.ListChanged
	}
	return can, nil
}

type peerKey struct{}

// WithPeer returns a context whose requests to servers are on behalf of a client.
func WithPeer(ctx context.Context, p *Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf returns the client of a context; nil when there is none.
func PeerOf(ctx context.Context) *Peer {
	p, _ := ctx.Value(peerKey{}).(*Peer)
	return p
}

// wants reports whether anything of a server is for the client.
func (p *Peer) wants() bool { return p != nil && (p.Can != Capabilities{} || p.LogLevel != "") }

// clientRequest is a request that is made for a client, while it is made.
type clientRequest struct {
	ctx   context.Context
	peer  *Peer
	clock atomic.Pointer[callctx.Deadline] // of the server's own time for the request; nil when it has none
}

// pause stops the time that the request may take, while its client is asked.
func (r *clientRequest) pause() (resume func()) {
	if clock := r.clock.Load(); clock != nil {
		return clock.Pause() // and the deadlines that it is within
	}
	return callctx.PauseDeadlines(r.ctx)
}

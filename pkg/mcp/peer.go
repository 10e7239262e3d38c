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

// Peer is the client for which a request to a server is made. It answers the server's requests and receives
// its notifications. It travels in the context of a call, see [WithPeer]. Without a Peer, the server learns
// that its client has no such capabilities.
//
// A client of MCP 2025-11-25 or older has its own session with each server, which knows the client's
// capabilities; the same applies to a client that wants log messages. Clients of 2026-07-28 share the
// session of a server that also speaks 2026-07-28, where each request carries the capabilities of its
// client. With an older server, each of their calls has its own session, which is kept for their next call.
type Peer struct {
	// Key identifies the client's session. Peers with the same key may share a session with a server.
	Key string
	// Modern means that the client speaks MCP 2026-07-28 or later, so that it receives messages only during a
	// call.
	Modern bool
	// Can holds the capabilities of the client.
	Can Capabilities
	// LogLevel is the lowest level of log messages that the client wants: a level of RFC 5424 in the spelling
	// of MCP. Default: no log messages.
	LogLevel string
	// Ask sends all requests of a server to the client at once, and returns the response to each. If the client
	// answers with an error, that error is a [v1.MCPError]. The context is that of the call to which the
	// requests belong, if it is known.
	Ask func(ctx context.Context, asked map[string]InputRequest) (map[string]json.RawMessage, error)
	// Names means that requests of servers are passed on unchanged, because the Peer is another process and
	// names the server itself. Default: the message of a form begins with the name of its server.
	Names bool
	// Notify passes on a notification. It is called for one notification at a time, and for all notifications
	// of a call before the call returns.
	Notify func(ctx context.Context, method string, params json.RawMessage)
}

// InputRequest is a request of a server to the client (MCP 2026-07-28, InputRequest).
type InputRequest struct {
	// Method is elicitation/create, sampling/createMessage or roots/list.
	Method string `json:"method"`
	// Params are the unchanged parameters.
	Params json.RawMessage `json:"params,omitempty"`
}

// masked returns the request with masked values. In schemas only the bare masks apply, because schemas
// contain names, which rules do not mask.
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
		return InputRequest{Method: r.Method} // cannot happen, because params were JSON
	}
	maps.Copy(masked, schemas)
	r.Params, _ = json.Marshal(masked)
	return r
}

// of returns the request as its client gets it: masked, and with the name of the server in texts for
// people.
func (r InputRequest) of(u *upstream, m *redact.Masker, p *Peer) InputRequest {
	r = r.masked(m)
	if r.Method == wire.MethodElicit && (p == nil || !p.Names) {
		r.Params = u.signed(r.Params)
	}
	return r
}

// signed adds the name of the server to the message of a form or a URL, so that the message cannot seem to
// come from another server or from toolctl. It removes other members that a client could take for the
// message, and keeps the rest unchanged.
func (u *upstream) signed(params json.RawMessage) json.RawMessage {
	members, ok := wire.ParseObject(params)
	if !ok {
		return params // no client accepts it as a form
	}
	var message string
	var out wire.Object
	at := -1 // the index of the message in out
	for _, m := range members {
		if !strings.EqualFold(m.Name, "message") {
			out = append(out, m)
			continue
		}
		if m.Name == "message" {
			_ = json.Unmarshal(m.Value, &message) // a value of another type is not a message
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

// asks returns a message with the server's name. It quotes the lines of the message, so that no line looks
// like one of toolctl.
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

// signedAll does the same as signed for the addresses that a person must visit first, according to an error
// (MCP specification, client/elicitation).
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

// Capabilities are the capabilities of a client (MCP specification, ClientCapabilities).
type Capabilities struct {
	// Form and URL are the modes of elicitation.
	Form, URL bool
	// Sampling means that the client samples messages. SamplingTools and SamplingContext are its extensions.
	Sampling, SamplingTools, SamplingContext bool
	// Roots means that the client lists its roots, and RootsChanged that it notifies of changes.
	Roots, RootsChanged bool
}

// allow reports whether the client's capabilities cover a request.
func (c Capabilities) allow(r InputRequest) bool {
	switch r.Method {
	case wire.MethodElicit:
		var p struct {
			Mode string `json:"mode"`
		}
		_ = json.Unmarshal(r.Params, &p) // a mode of another type counts as no mode
		return p.Mode == "url" && c.URL || p.Mode != "url" && c.Form
	case wire.MethodSample:
		return c.Sampling
	case wire.MethodRoots:
		return c.Roots
	}
	return false
}

// wire returns the capabilities in the form of the protocol.
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

// CapabilitiesOf reads the capabilities that a client declares (MCP specification, ClientCapabilities).
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
		can.Form = form || !can.URL // clients of 2025-06-18 declare no mode
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

// WithPeer returns a context for requests to servers on behalf of a client.
func WithPeer(ctx context.Context, p *Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf returns the client of a context; nil without a client.
func PeerOf(ctx context.Context) *Peer {
	p, _ := ctx.Value(peerKey{}).(*Peer)
	return p
}

// wants reports whether the client can receive anything from a server besides responses.
func (p *Peer) wants() bool { return p != nil && (p.Can != Capabilities{} || p.LogLevel != "") }

// clientRequest is a running request on behalf of a client.
type clientRequest struct {
	ctx   context.Context
	peer  *Peer
	clock atomic.Pointer[callctx.Deadline] // the server's time limit for the request; nil without one
}

// pause stops the time limit of the request while its client answers a question.
func (r *clientRequest) pause() (resume func()) {
	if clock := r.clock.Load(); clock != nil {
		return clock.Pause() // pauses the enclosing deadlines too
	}
	return callctx.PauseDeadlines(r.ctx)
}

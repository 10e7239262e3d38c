package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// hello describes a server, as received when the session was opened.
type hello struct {
	Version      string     `json:"protocolVersion"`
	Versions     []string   `json:"supportedVersions,omitempty"`
	Capabilities *serverCan `json:"capabilities,omitempty"`
	Info         struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"serverInfo"`
	Instructions string `json:"instructions,omitempty"`
	session      string // session ID of streamable HTTP
}

// serverCan holds the capabilities of a server (MCP specification, ServerCapabilities) that this package
// uses.
type serverCan struct {
	Tools     *changes         `json:"tools,omitempty"`
	Prompts   *changes         `json:"prompts,omitempty"`
	Resources *changes         `json:"resources,omitempty"`
	Logging   *json.RawMessage `json:"logging,omitempty"`
}

type changes struct {
	ListChanged bool `json:"listChanged,omitempty"`
	Subscribe   bool `json:"subscribe,omitempty"`
}

// can returns the capabilities of the server. A server that declares no capabilities counts as one with
// tools, because nearly all servers have tools.
func (h *hello) can() serverCan {
	if h.Capabilities == nil {
		return serverCan{Tools: &changes{}}
	}
	return *h.Capabilities
}

// legacyVersion is the newest version of MCP with sessions.
var legacyVersion = wire.Versions[1]

// who describes this client to a server.
type who struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (s *session) me() who { return who{s.upstream.owner.opts.Name, s.upstream.owner.opts.Version} }

// greet opens the session with a version. Without a version it queries the server's versions, and falls
// back to the older handshake if the server does not know that query.
func (s *session) greet(ctx context.Context, version string) error {
	if version == "" {
		err := s.discover(ctx)
		if again(err) {
			err = s.discover(ctx)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, wire.ErrClosed), s.reason() != nil:
			return err
		}
		version = legacyVersion
	}
	params := []param{{"protocolVersion", version}, {"capabilities", s.slot.key.can.wire()}, {"clientInfo", s.me()}}
	got, err := s.link.send(ctx, &exchange{id: s.calls.NewID(), method: "initialize", params: params})
	if err == nil {
		err = read(got.answer, &s.hello)
	}
	switch {
	case err != nil:
		return err
	case !slices.Contains(wire.Versions[1:], s.hello.Version):
		return fmt.Errorf("unsupported protocol version: %q", s.hello.Version)
	}
	text, err := wire.Request("", "notifications/initialized", json.RawMessage("{}"))
	if err != nil {
		return err
	}
	return s.link.ready(ctx, text)
}

// again reports whether a server refused a version but supports one that this client offered.
func again(err error) bool {
	var said *refusal
	var data struct{ Supported []string }
	const codeVersion = -32022
	return errors.As(err, &said) && said.err.Code == codeVersion && json.Unmarshal(said.err.Data, &data) == nil && slices.Contains(data.Supported, wire.ModernVersion)
}

// discover sends server/discover, which servers of 2026-07-28 answer with a description of themselves.
func (s *session) discover(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	x := &exchange{id: s.calls.NewID(), method: "server/discover", version: wire.ModernVersion, quiet: true}
	x.meta = map[string]any{wire.MetaVersion: wire.ModernVersion, wire.MetaClient: s.me(), wire.MetaCapabilities: s.slot.key.can.wire()}
	got, err := s.link.send(within, x)
	var h hello
	if err == nil {
		err = read(got.answer, &h)
	}
	if err == nil && !slices.Contains(h.Versions, wire.ModernVersion) {
		err = fmt.Errorf("unsupported protocol versions: %v", h.Versions)
	}
	if err != nil {
		return err
	}
	h.Version = wire.ModernVersion
	if raw := got.answer.Meta.Get(wire.MetaServer); raw != nil {
		_ = json.Unmarshal(raw, &h.Info) // unreadable information stays empty
	}
	s.hello = h
	return nil
}

// refusal is the JSON-RPC error with which a server refused to open a session.
type refusal struct{ err *wire.Error }

func (e *refusal) Error() string { return e.err.Message }

// read decodes the result of a response.
func read(answer *wire.Message, into any) error {
	if answer.Error != nil {
		return &refusal{answer.Failure()}
	}
	return json.Unmarshal(answer.Body, into)
}

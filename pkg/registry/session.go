package registry

import (
	"context"
	"errors"
	"log/slog"

	v1 "toolctl.dev/toolctl/api/v1"
)

// CallSession describes the call that a tool written in Go serves.
type CallSession struct {
	// ID is the session that the call belongs to, v1.Call.Session; empty for a call
	// that is a session of its own.
	ID string
	// CallID names the call in the audit and in logs.
	CallID string
	// Turn is the turn within the session.
	Turn string
	// Principal is the caller; empty on a command line.
	Principal string
	// Client is the calling program.
	Client Client
	// Logger writes to the registry's log, with the names of the call.
	Logger *slog.Logger

	attachments *Attachments
}

// Attachment returns what a reference of an argument names, such as "attachment:1".
func (s CallSession) Attachment(ref string) (v1.Part, bool) { return s.attachments.Get(s.ID, ref) }

// Attach holds a part for later calls of the session, and returns its reference.
func (s CallSession) Attach(p v1.Part) (string, error) {
	if s.attachments == nil {
		return "", errors.New("attachments are off: set registry.Options.Attachments")
	}
	return s.attachments.Put(s.ID, p)
}

// Client is the program that makes calls, as it says of itself.
type Client struct {
	// Name and Version are the program's.
	Name, Version string
	// Metadata are what the client sent beside the arguments, such as _meta of MCP.
	Metadata map[string]any
	// Progress takes reports on the call: how far it is, of how much (0 when that is not
	// known), and a sentence. Nil when nobody asked.
	Progress func(done, total float64, message string)
}

// Progress reports how far the call is; total is 0 when it is not known. It does nothing
// when nobody asked.
func (s CallSession) Progress(done, total float64, message string) {
	if s.Client.Progress != nil {
		s.Client.Progress(done, total, message)
	}
}

type (
	clientKey  struct{}
	sessionKey struct{}
)

// WithClient says which program makes the calls that are made with the context.
func WithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// Session returns the session of the call that a tool made in Go serves. Outside such a
// call it has a Logger that writes nothing, and nothing else.
func Session(ctx context.Context) CallSession {
	s, ok := ctx.Value(sessionKey{}).(CallSession)
	if !ok {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

func (c *call) withSession(ctx context.Context) context.Context {
	s := CallSession{ID: c.Session, CallID: c.ID, Turn: c.Turn, Principal: c.Principal, attachments: c.reg.opts.Attachments, Logger: c.reg.opts.Logger.With(slog.String("tool", c.tool.spec.Metadata.Name))}
	if c.ID != "" {
		s.Logger = s.Logger.With(slog.String("call_id", c.ID))
	}
	s.Client, _ = ctx.Value(clientKey{}).(Client)
	return context.WithValue(ctx, sessionKey{}, s)
}

package registry

import (
	"context"
	"errors"
	"log/slog"

	v1 "toolctl.dev/toolctl/api/v1"
)

// CallSession describes the call that a tool made in Go executes.
type CallSession struct {
	// ID is the session of the call, v1.Call.Session; empty for a call without a session.
	ID string
	// CallID is the ID of the call in the audit log and in logs.
	CallID string
	// Turn is the turn within the session.
	Turn string
	// Principal is the caller; empty on a command line.
	Principal string
	// Logger writes to the registry's log and adds the IDs of the call.
	Logger *slog.Logger

	attachments *Attachments
}

// Attachment returns the attachment for a reference in an argument, such as "attachment:1".
func (s CallSession) Attachment(ref string) (v1.Part, bool) { return s.attachments.Get(s.ID, ref) }

// Attach stores a part for later calls of the session and returns its reference.
func (s CallSession) Attach(p v1.Part) (string, error) {
	if s.attachments == nil {
		return "", errors.New("attachments are off: set registry.Options.Attachments")
	}
	return s.attachments.Put(s.ID, p)
}

type sessionKey struct{}

// Session returns the session of the call that a tool made in Go executes. Outside of such a call it returns an empty
// session with a Logger that discards everything.
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
	return context.WithValue(ctx, sessionKey{}, s)
}

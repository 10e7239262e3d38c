package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/argtext"
	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// approvalForm is the form that a person fills in (MCP specification, client/elicitation).
var approvalForm = json.RawMessage(`{
  "type": "object",
  "properties": {
    "approve": {"type": "boolean", "title": "Approve", "description": "Yes allows the call; no refuses it"},
    "reason": {"type": "string", "title": "Reason", "description": "Why, for the record", "maxLength": 500}
  },
  "required": ["approve"]
}`)

// asker returns an Asker that requests approval from the person at a client with forms. The call stays
// pending if the person closes the form, or if a form cannot show the arguments.
func (s *Server) asker(p *mcp.Peer, principal string) callctx.Asker {
	return func(ctx context.Context, info v1.PendingToolInfo) (v1.Decision, bool, error) {
		if err := info.MayAsk(principal); err != nil {
			return v1.Decision{Reason: "its policy leaves the decision to others"}, false, nil //nolint:nilerr // the call waits for them
		}
		text, err := approvalText(info)
		if err != nil {
			s.opts.Logger.WarnContext(ctx, "a form cannot show the arguments of a call that needs approval: use 'toolctl approvals show' and 'approve'", slog.String("tool", info.ToolName), slog.Any("error", err))
			return v1.Decision{Reason: "a form cannot show all of its arguments: " + err.Error()}, false, nil
		}
		params, err := json.Marshal(struct {
			Mode    string          `json:"mode"`
			Message string          `json:"message"`
			Schema  json.RawMessage `json:"requestedSchema"`
		}{"form", text, approvalForm})
		if err != nil {
			return v1.Decision{}, false, err
		}
		// The name is random, so that an answer sent before the question does not count.
		name := "approval-" + strings.ToLower(rand.Text()[:10])
		answers, err := p.Ask(ctx, map[string]mcp.InputRequest{name: {Method: wire.MethodElicit, Params: params}})
		switch {
		case ctx.Err() != nil:
			return v1.Decision{}, false, context.Cause(ctx)
		case errors.Is(err, admission.ErrStopping):
			return v1.Decision{}, false, err
		case err != nil:
			return v1.Decision{}, false, nil //nolint:nilerr // the client cannot ask after all: the call waits
		}
		var got struct {
			Action  string `json:"action"`
			Content struct {
				Approve bool   `json:"approve"`
				Reason  string `json:"reason"`
			} `json:"content"`
		}
		if json.Unmarshal(answers[name], &got) != nil {
			return v1.Decision{}, false, nil //nolint:nilerr // no answer that can be read is none
		}
		d := v1.Decision{By: principal, Reason: strings.TrimSpace(got.Content.Reason)}
		if d.By == "" {
			d.By = "the client"
		}
		switch got.Action {
		case "accept":
			d.Approved = got.Content.Approve
		case "decline":
			d.Reason = ""
		default:
			return v1.Decision{}, false, nil
		}
		return d, true, nil
	}
}

// approvalText returns the message of the form. It begins with toolctl as the sender, just as messages of
// MCP servers begin with their names. The error explains why the form cannot show the call.
func approvalText(info v1.PendingToolInfo) (string, error) {
	text := info.Message
	if text == "" {
		text = "tool \"" + info.ToolName + "\" needs approval"
	}
	if len(info.Args) > 0 {
		args, err := argtext.Form(info.Args)
		if err != nil {
			return "", err
		}
		text += "\n\nIts arguments:\n" + args
	}
	return "toolctl asks: " + text + "\n\nAllow this call?", nil
}

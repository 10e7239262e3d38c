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

// approvalForm is what a person is asked (MCP specification, client/elicitation).
var approvalForm = json.RawMessage(`{
  "type": "object",
  "properties": {
    "approve": {"type": "boolean", "title": "Approve", "description": "Yes allows the call; no refuses it"},
    "reason": {"type": "string", "title": "Reason", "description": "Why, for the record", "maxLength": 500}
  },
  "required": ["approve"]
}`)

// asker asks the person at a client for approval, when the client has forms. A person
// who closes the form leaves the call pending, and so do arguments that no form can show.
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
		// The name cannot be guessed: an answer that came before the question is none.
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

// approvalText is what the form says. It begins with who asks, as what a server of others asks
// begins with the name of that server. The error says why it cannot show what the call does.
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

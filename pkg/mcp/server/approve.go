package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// approvalForm is what a person is asked (MCP specification, client/elicitation).
var approvalForm = json.RawMessage(`{
  "type": "object",
  "properties": {
    "approve": {"type": "boolean", "title": "Approve", "description": "Yes lets the call go on; no refuses it"},
    "reason": {"type": "string", "title": "Reason", "description": "Why, for the record", "maxLength": 500}
  },
  "required": ["approve"]
}`)

// maxShownArgs is how much of the arguments the form shows.
const maxShownArgs = 4 << 10

// asker asks the person at a client for approval, when the client has forms. A person
// who closes the form leaves the call pending.
func asker(p *mcp.Peer, principal string) v1.Asker {
	return func(ctx context.Context, info v1.PendingToolInfo) (v1.Decision, bool, error) {
		params, err := json.Marshal(struct {
			Mode    string          `json:"mode"`
			Message string          `json:"message"`
			Schema  json.RawMessage `json:"requestedSchema"`
		}{"form", approvalText(info), approvalForm})
		if err != nil {
			return v1.Decision{}, false, err
		}
		// The name cannot be guessed: an answer that came before the question is none.
		name := "approval-" + strings.ToLower(rand.Text()[:10])
		answers, err := p.Ask(ctx, map[string]mcp.InputRequest{name: {Method: methodElicit, Params: params}})
		switch {
		case ctx.Err() != nil:
			return v1.Decision{}, false, context.Cause(ctx)
		case errors.Is(err, errStopping):
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

func approvalText(info v1.PendingToolInfo) string {
	text := info.Message
	if text == "" {
		text = "tool \"" + info.ToolName + "\" needs approval"
	}
	var args bytes.Buffer
	if json.Indent(&args, info.Args, "", "  ") == nil && args.Len() > 0 {
		shown := args.String()
		if len(shown) > maxShownArgs {
			shown = strings.ToValidUTF8(shown[:maxShownArgs], "") + "…"
		}
		text += "\n\nIts arguments:\n" + shown
	}
	return text + "\n\nShall the call go on?"
}

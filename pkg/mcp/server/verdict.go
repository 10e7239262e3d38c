package server

import (
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// Keys in the _meta of results.
const (
	metaPending = "toolctl.dev/pending" // the call that waits for approval
	metaPolicy  = "toolctl.dev/policy"  // the decision of the policies, and the remaining budgets
)

// verdict is the decision of the policies in the form for clients.
type verdict struct {
	v1.PolicyDecision
	Remaining []v1.Budget `json:"remaining,omitempty"`
}

// judged adds the decision of the policies to the _meta of the call's result.
func (r *result) judged(res v1.Result) {
	if res.Policy == nil {
		return
	}
	meta := r.Meta
	if meta == nil {
		meta = map[string]any{}
	}
	meta[metaPolicy] = verdict{*res.Policy, res.Budgets}
	r.Meta = meta
}

// pending tells a model that nothing has been done yet, and how to continue.
func (r *result) pending(p *v1.PendingToolInfo) {
	r.IsError = true
	if p == nil {
		p = &v1.PendingToolInfo{}
	}
	text := "the call was not made: it waits for a decision"
	if p.Message != "" {
		text = "the call was not made: " + p.Message
	}
	why, notAsked := p.Metadata[v1.MetaNotAsked].(string)
	if notAsked {
		text += "; nobody was asked, because " + why
	}
	if p.ID != "" {
		text += fmt.Sprintf(" (pending call %s", p.ID)
		if p.ExpiresAt != nil {
			text += ", until " + p.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z")
		}
		where := fmt.Sprintf("with 'toolctl approvals approve %s'", p.ID)
		if p.CallbackURL != "" {
			where = "at " + p.CallbackURL
		}
		who := "a person"
		if named := p.Deciders(); named != "" {
			who = "a person who may decide on it (" + named + ")"
		}
		text += fmt.Sprintf("). Ask %s to approve it %s, then repeat the call with the same arguments", who, where)
		if notAsked {
			text += fmt.Sprintf(". 'toolctl approvals show %s' shows all arguments", p.ID)
		}
	}
	r.Content = append(r.Content, wire.TextBlock(text))
	public := *p
	public.Args = nil // the client knows its own arguments
	r.Meta = map[string]any{metaPending: public}
}

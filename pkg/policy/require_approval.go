package policy

import (
	"cmp"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// requireApproval is spec.require_approval: it holds the calls of the tools that
// fit one of its patterns until a person has approved them.
func requireApproval(s *v1.ToolPolicySpec) []*rule {
	if len(s.RequireApproval) == 0 {
		return nil
	}
	ms := max(0, s.ApprovalTimeoutMS)
	return []*rule{{
		field:     "/spec/require_approval",
		approvers: s.Approvers,
		asks:      time.Duration(cmp.Or(ms, v1.DefaultApprovalTimeoutMS)) * time.Millisecond,
		judge: func(t *Subject) verdict {
			if f, ok := t.among(s.RequireApproval); ok {
				return verdict{false, f.as(t, fmt.Sprintf("listed in require_approval as %q", f.pattern)), f.name}
			}
			return verdict{ok: true, why: "not listed in require_approval"}
		},
	}}
}

// Approval is what an admitted call waits for: that a person approves it.
type Approval struct {
	// Policy and Rule are what asks for it.
	Policy, Rule string
	// Timeout is how long the call can wait.
	Timeout time.Duration
	// Approvers are who may give it, one of each: those of all policies that ask for one.
	Approvers []v1.Approvers
	// Source is where the rule stands.
	Source v1.Source

	tool   string
	unsaid int // 1 when there are no Approvers yet and a policy that names none
}

// add adds who may decide by one more policy. A policy that does not say keeps the caller out,
// whatever others say.
func (a *Approval) add(next *v1.Approvers) {
	switch {
	case next != nil:
		for range a.unsaid {
			a.Approvers = append(a.Approvers, v1.Approvers{})
		}
		a.Approvers, a.unsaid = append(a.Approvers, *next), 0
	case len(a.Approvers) > 0:
		a.Approvers = append(a.Approvers, v1.Approvers{})
	default:
		a.unsaid = 1
	}
}

// Refusal is the error of a call that was not approved, with the reason.
func (a *Approval) Refusal(message string) *v1.PolicyError {
	return &v1.PolicyError{Tool: a.tool, Policy: a.Policy, Rule: a.Rule, Message: message, Source: a.Source}
}

func (r *rule) approval(tool string) *Approval {
	return &Approval{Policy: r.policy.name, Rule: r.name, Timeout: r.asks, Source: r.source, tool: tool}
}

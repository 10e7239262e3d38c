package policy

import (
	"cmp"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// requireApproval returns the rule of spec.require_approval: it holds calls of the tools
// that match one of its patterns until a person approves them.
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

// Approval is the approval that an admitted call waits for.
type Approval struct {
	// Policy and Rule are the policy and the rule that require the approval.
	Policy, Rule string
	// Timeout is the maximum time for which the call can wait.
	Timeout time.Duration
	// Approvers has an element for each policy that requires approval. The decision must satisfy all elements.
	Approvers []v1.Approvers
	// Source is the place of the rule in its manifest.
	Source v1.Source

	tool   string
	unsaid int // 1 if Approvers is empty and a policy names no approvers
}

// add adds the approvers of one more policy. A policy without approvers still excludes the caller,
// regardless of other policies.
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

// Refusal returns the error for a call that was not approved, with the reason.
func (a *Approval) Refusal(message string) *v1.PolicyError {
	return &v1.PolicyError{Tool: a.tool, Policy: a.Policy, Rule: a.Rule, Message: message, Source: a.Source}
}

func (r *rule) approval(tool string) *Approval {
	return &Approval{Policy: r.policy.name, Rule: r.name, Timeout: r.asks, Source: r.source, tool: tool}
}

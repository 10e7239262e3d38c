package v1

import (
	"encoding/json"
	"fmt"
	"time"
)

// ReasonApproval is the reason of a [PendingToolInfo] whose call waits until a
// person approves it, because a policy's require_approval names its tool.
const ReasonApproval = "requires_approval"

// MetaNotAsked is the key in [PendingToolInfo.Metadata] of the reason, given by an [Asker], why no person was asked at
// once.
const MetaNotAsked = "not_asked"

// Decision is what a person decided on a call that needs approval.
type Decision struct {
	// Approved allows the call.
	Approved bool
	// By is the person who decided; empty if unknown.
	By string
	// Groups are the groups of By, taken from its token.
	Groups []string
	// AtOnce is set if the person behind the call was asked during the call.
	AtOnce bool
	// Simulated is set if a scenario answers in the place of a person. Approvers are not checked then.
	Simulated bool
	// Reason is the reason that the person gave; may be empty.
	Reason string
	// Args are the edited arguments, a JSON object; nil keeps the arguments of the call. They are validated like those
	// of any call.
	Args json.RawMessage
}

// States of a [PendingCall].
const (
	ApprovalPending  = "pending"
	ApprovalApproved = "approved"
	ApprovalDenied   = "denied"
	// ApprovalUsed is the state of an approval that let its one call through.
	ApprovalUsed = "used"
	// ApprovalExpired is the state of a call that nobody decided on, or that was not made, in time.
	ApprovalExpired = "expired"
)

// PendingCall is a call that waits or waited for approval. It holds what a person needs for the decision. It keeps only
// a hash of the unmasked arguments, because the caller sends them again.
type PendingCall struct {
	// ID identifies the call for the person who decides, and in [Call.Approval].
	ID string `json:"id"`
	// State is one of the states above; [PendingCall.StateAt] also considers the time.
	State     string `json:"state"`
	Tool      string `json:"tool"`
	Namespace string `json:"namespace"`
	// Policy and Rule require the approval.
	Policy string `json:"policy"`
	Rule   string `json:"rule"`
	// Approvers lists who may decide; the person must be in each entry.
	Approvers []Approvers `json:"approvers,omitempty"`
	Principal string      `json:"principal,omitempty"`
	Session   string      `json:"session,omitempty"`
	Turn      string      `json:"turn,omitempty"`
	// Args are the arguments with secrets masked.
	Args json.RawMessage `json:"args"`
	// ArgsHash is the SHA-256 of the arguments of the call, in hexadecimal.
	ArgsHash string    `json:"args_hash"`
	Created  time.Time `json:"created_at"`
	// Expires is when the call can no longer be approved, or, once decided on, when the decision
	// no longer holds.
	Expires time.Time `json:"expires_at"`
	// By, Reason and Decided are the person who decided, the reason and the time.
	By      string    `json:"by,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Decided time.Time `json:"decided_at,omitzero"`

	// EditedArgs are the arguments that were approved instead, not masked; nil keeps the arguments of the call. Redact
	// are the rules that mask them. They are not part of the JSON, so that no list shows them.
	EditedArgs json.RawMessage `json:"-"`
	Redact     []string        `json:"-"`
	// Subject is equal for calls of the same tool with the same arguments.
	Subject string `json:"-"`
}

// StateAt returns the state at a time.
func (p *PendingCall) StateAt(now time.Time) string {
	if p.State != ApprovalUsed && !now.Before(p.Expires) {
		return ApprovalExpired
	}
	return p.State
}

// Decide records the decision of a person at a time. A decision holds as long as
// the call could wait for it. The error is an [ApprovalError] when the call does
// not wait any more, and a [PolicyError] when the decision is for somebody else.
func (p *PendingCall) Decide(d Decision, now time.Time) error {
	if state := p.StateAt(now); state != ApprovalPending {
		return &ApprovalError{ID: p.ID, State: state, By: p.By}
	}
	if err := p.MayDecide(d); err != nil {
		return err
	}
	p.State = ApprovalDenied
	if d.Approved {
		p.State, p.EditedArgs = ApprovalApproved, d.Args
	}
	p.By, p.Reason, p.Decided = d.By, d.Reason, now
	p.Expires = now.Add(p.Expires.Sub(p.Created))
	return nil
}

// Record returns the audit record of the decision; nil if there is none.
func (p *PendingCall) Record() *ApprovalRecord {
	if p.Decided.IsZero() {
		return nil
	}
	r := &ApprovalRecord{ID: p.ID, Decision: ApprovalApproved, By: p.By, Reason: p.Reason, Time: p.Decided, Edited: p.EditedArgs != nil}
	if p.State == ApprovalDenied {
		r.Decision = ApprovalDenied
	}
	return r
}

// ApprovalRecord is the audit record of a decision on a call.
type ApprovalRecord struct {
	// ID names the pending call; empty when a person was asked at once.
	ID string `json:"id,omitempty"`
	// Decision is "approved" or "denied".
	Decision string    `json:"decision"`
	By       string    `json:"by,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Time     time.Time `json:"time"`
	// Edited reports whether the call was approved with other arguments.
	Edited bool `json:"edited,omitempty"`
}

// ApprovalError reports that a pending call can no longer be decided on.
type ApprovalError struct {
	ID string
	// State is the state of the call: "approved", "denied", "used" or "expired".
	State string
	// By is the person who decided, if anybody did.
	By string
}

func (e *ApprovalError) Error() string {
	switch e.State {
	case ApprovalExpired:
		return fmt.Sprintf("pending call %q has expired: repeat the tool call", e.ID)
	case ApprovalUsed:
		return fmt.Sprintf("pending call %q was approved%s, and was made", e.ID, by(e.By))
	}
	return fmt.Sprintf("pending call %q was already decided: %s%s", e.ID, e.State, by(e.By))
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

// Limits on pending calls.
const (
	// MaxPendingCalls is the maximum number of pending calls.
	MaxPendingCalls = 1000
	// MaxPendingCallsPerSession is the maximum number of pending calls of one principal and session.
	MaxPendingCallsPerSession = 50
	// MaxPendingCallsPerPrincipal is the maximum number of pending calls of one named principal.
	MaxPendingCallsPerPrincipal = MaxPendingCalls / 4
	// MaxPendingArgs is the maximum size of the arguments of such a call in bytes: more than anybody reads before
	// deciding.
	MaxPendingArgs = 64 << 10
)

// ErrPendingFull reports that the limit of pending calls is reached.
var ErrPendingFull = fmt.Errorf("too many calls wait for approval: at most %d of one session, %d of one principal and %d in all", MaxPendingCallsPerSession, MaxPendingCallsPerPrincipal, MaxPendingCalls)

// Repeats reports whether p repeats a saved call: the same tool with the same arguments, called by the same principal. A
// call that names the one it repeats may come from another session. A call with neither a name nor a principal may not,
// because nothing shows that the caller is the same.
func (p *PendingCall) Repeats(kept *PendingCall, name string) bool {
	if p.Principal != kept.Principal || p.Subject != kept.Subject {
		return false
	}
	if name != "" {
		return kept.ID == name
	}
	return p.Principal != "" || p.Session == kept.Session
}

package v1

import (
	"fmt"
	"strings"
)

// Approvers lists who may decide on the calls that a policy's require_approval holds back.
type Approvers struct {
	// Principals are who may decide: exact names or patterns with a trailing "*". A principal of
	// "toolctl serve" is the name of its token; on a command line it is --as, else the login.
	// Example: [ann, "lead-*"].
	Principals []string `json:"principals,omitempty" check:"pattern=principal"`
	// Groups are groups whose members may decide. They come from the token (see --oauth-groups-claim), or from
	// --as-group on the command line. Example: [finance].
	Groups []string `json:"groups,omitempty"`
	// Self allows the principal that made the call to decide on it too, if it is one of the approvers. Default: false.
	Self bool `json:"self,omitempty"`
	// Ask client takes the answer to the form that the calling client is shown (MCP elicitation) for a
	// decision, when the principal that made the call is one of the approvers. Without it, and
	// without self, a client that has a name cannot approve its own calls. Default: others decide.
	Ask string `json:"ask,omitempty" check:"oneof=client"`
}

// AskClient is the value of [Approvers.Ask].
const AskClient = "client"

// open reports whether everybody may decide, possibly except the caller.
func (a *Approvers) open() bool { return len(a.Principals) == 0 && len(a.Groups) == 0 }

// include reports whether a principal with groups is one of the approvers.
func (a *Approvers) include(principal string, groups []string) bool {
	return among(a.Principals, a.Groups, principal, groups)
}

// String names the approvers, for messages.
func (a Approvers) String() string {
	var parts []string
	if len(a.Principals) > 0 {
		parts = append(parts, strings.Join(a.Principals, ", "))
	}
	if len(a.Groups) > 0 {
		parts = append(parts, "the groups "+strings.Join(a.Groups, ", "))
	}
	if len(parts) == 0 {
		return "anyone"
	}
	return strings.Join(parts, " and ")
}

// Deciders names who may decide on the call, for messages; "" when anyone but the caller may.
func (p *PendingToolInfo) Deciders() string {
	var each []string
	for _, a := range p.Approvers {
		if !a.open() {
			each = append(each, a.String())
		}
	}
	return strings.Join(each, ", who is one of these, too: ")
}

// MayDecide returns why a decision on the call is not for who made it: a [PolicyError], or
// nil. It is the one place that knows who may approve: the caller may not, unless the
// policy says so, and where policies name approvers it must be one of each.
func (p *PendingCall) MayDecide(d Decision) error {
	if d.Simulated {
		return nil
	}
	refuse := func(format string, args ...any) error {
		return &PolicyError{Tool: p.Tool, Policy: p.Policy, Rule: "approvers", Message: fmt.Sprintf(format, args...)}
	}
	self := len(p.Approvers) > 0
	for _, a := range p.Approvers {
		if !a.include(d.By, d.Groups) {
			return refuse("%q may not decide on this call; %s may", d.By, a)
		}
		self = self && (a.Self || d.AtOnce && a.Ask == AskClient)
	}
	if !self && p.Principal != "" && (d.AtOnce || d.By == p.Principal) { // the person who is asked at once is the user of the caller
		return refuse("%q made the call: another principal must decide on it", d.By)
	}
	return nil
}

// MayAsk returns why the person behind the call of a principal, "" for one without a name, is not
// asked as it is made: the decision would be for somebody else. It is nil when that person may be asked.
func (p *PendingToolInfo) MayAsk(principal string) error {
	call := PendingCall{Tool: p.ToolName, Principal: principal, Approvers: p.Approvers}
	return call.MayDecide(Decision{By: principal, AtOnce: true})
}

func (a *Approvers) rules(path string) []Violation {
	if a.open() && !a.Self && a.Ask == "" {
		return []Violation{{Path: path, Expected: "principals, groups, self or ask", Got: "none of them", Message: "approvers names nobody: give principals or groups, or leave it out"}}
	}
	return groupViolations(path+"/groups", a.Groups)
}

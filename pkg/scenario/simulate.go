package scenario

import (
	"context"
	"errors"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
)

// Simulation is the outcome of policies on recorded calls.
type Simulation struct {
	// Calls counts the recorded calls that had reached the policies. Skipped counts the others,
	// whose arguments were refused before or whose tool did not exist.
	Calls   int `json:"calls"`
	Skipped int `json:"skipped"`
	// Changed are the calls that would get a different decision, in order.
	Changed []Changed `json:"changed"`
}

// Changed is one call that would get a different decision.
type Changed struct {
	Time      time.Time `json:"time"`
	CallID    string    `json:"call_id"`
	Session   string    `json:"session,omitempty"`
	Tool      string    `json:"tool"`
	Namespace string    `json:"namespace"`
	// Was and Now are the decisions, with the rules that made them.
	Was v1.PolicyDecision `json:"was"`
	Now v1.PolicyDecision `json:"now"`
	// Message says why a call would be refused.
	Message string `json:"message,omitempty"`
}

// Simulate applies the policies among the objects to recorded calls in order, each at its own
// time and in its own session and turn. Counts start at 0. A broken policy is an error, because
// it might refuse a call.
func Simulate(ctx context.Context, objects []v1.Object, records []v1.AuditRecord) (*Simulation, error) {
	var policies []*v1.ToolPolicy
	tools, servers := map[v1.Key]*v1.Tool{}, map[v1.Key]*v1.MCPServer{}
	for _, o := range objects {
		switch o := o.(type) {
		case *v1.ToolPolicy:
			if o.Broken() {
				return nil, v1.NewValidationError(v1.ManifestInvalid, o.Metadata.Name, o.Violations)
			}
			policies = append(policies, o)
		case *v1.Tool:
			tools[o.Key()] = o
		case *v1.MCPServer:
			servers[o.Key()] = o
		}
	}
	var now time.Time
	set, counters := policy.Compile(policies), policy.NewMemoryCounters(func() time.Time { return now })
	out := &Simulation{Changed: []Changed{}}
	ended := map[string]bool{} // calls with an outcome, for which the record of the start adds nothing
	for _, rec := range records {
		ended[rec.CallID] = ended[rec.CallID] || isCall(&rec) && rec.Status != v1.StatusStarted
	}
	for _, rec := range records {
		if !isCall(&rec) || rec.Status == v1.StatusStarted && ended[rec.CallID] {
			continue
		}
		if !reachedPolicy(&rec) {
			out.Skipped++
			continue
		}
		subject := policy.Subject{Namespace: rec.Namespace, Name: rec.Tool}
		if t := tools[v1.Key{Kind: v1.KindTool, Namespace: rec.Namespace, Name: rec.Tool}]; t != nil {
			subject.Labels = t.Metadata.Labels
			subject.Server, subject.Remote = registry.Binding(t)
		} else if server, remote, ok := strings.Cut(rec.Tool, "__"); ok && servers[serverKey(&rec, server)] != nil {
			subject.Server, subject.Remote = server, remote
		}
		if server := servers[serverKey(&rec, subject.Server)]; server != nil {
			subject.ServerLabels = server.Metadata.Labels
		}
		out.Calls++
		now = rec.Time
		admission, err := set.For(subject).Admit(ctx, counters, policy.Request{Session: rec.Session, Turn: rec.Turn, Principal: rec.Principal})
		var refused *v1.PolicyError
		if err != nil && !errors.As(err, &refused) {
			return nil, err
		}
		now, was := decision(&admission.Decision), decision(rec.Policy)
		if wait := admission.Approval; wait != nil {
			if rec.Approval == nil || rec.Approval.Decision != v1.ApprovalApproved { // the call would not run
				if err := admission.Release(ctx); err != nil {
					return nil, err
				}
			}
			if rec.Approval != nil || was.Decision == v1.DecisionPending {
				continue // a person decides in both cases
			}
			now = v1.PolicyDecision{Decision: v1.DecisionPending, Rule: wait.Rule, Policy: wait.Policy}
		}
		if now.Decision == was.Decision {
			continue
		}
		c := Changed{Time: rec.Time, CallID: rec.CallID, Session: rec.Session, Tool: rec.Tool, Namespace: rec.Namespace, Was: was, Now: now}
		if refused != nil {
			c.Message = refused.Message
		}
		out.Changed = append(out.Changed, c)
	}
	return out, nil
}

func serverKey(rec *v1.AuditRecord, name string) v1.Key {
	return v1.Key{Kind: v1.KindMCPServer, Namespace: rec.Namespace, Name: name}
}

// isCall reports whether the record is one of a call, not of an approval, a search, a change of the
// store or a gap.
func isCall(rec *v1.AuditRecord) bool {
	switch rec.Status {
	case v1.ApprovalApproved, v1.ApprovalDenied, v1.StatusChanged, v1.StatusGap:
		return false
	}
	return !rec.IsSearch()
}

// reachedPolicy reports whether the call reached the policies, which come after the check of
// arguments.
func reachedPolicy(rec *v1.AuditRecord) bool {
	switch rec.ErrorType {
	case v1.ArgsInvalid, v1.ManifestInvalid, v1.TypeNotFound:
		return false
	}
	return true
}

// decision returns the decision; a call without a policy is allowed.
func decision(d *v1.PolicyDecision) v1.PolicyDecision {
	if d == nil || d.Decision == "" {
		return v1.PolicyDecision{Decision: v1.DecisionAllow}
	}
	return *d
}

package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Chain is the list of rules that govern one tool. It never changes and is safe for concurrent use. A nil chain allows
// every call, as does a chain without policies.
type Chain struct {
	set      *Set
	tool     Subject
	policies []*policy // matching policies, including those without rules
	personal bool      // some policies match principals: of returns the chain of one principal
	requires bool      // a policy for all principals has tool_choice required
	// steps are the rules that may affect a call, in the order of evaluation: counts,
	// refusals by name, and approvals. They end with the first rule that refuses every
	// call, since no later rule can be the first to refuse.
	steps   []*rule
	blocked bool
}

// of returns the chain of the rules that govern the calls of a principal.
func (c *Chain) of(principal string) *Chain {
	if !c.personal {
		return c
	}
	v := &Chain{set: c.set, tool: c.tool, requires: c.requires, steps: make([]*rule, 0, len(c.steps))}
	for _, p := range c.policies {
		if p.governs(principal) {
			v.policies = append(v.policies, p)
			v.requires = v.requires || p.requires
		}
	}
	for _, r := range c.steps {
		if !r.policy.governs(principal) {
			continue
		}
		if v.steps = append(v.steps, r); r.blocks() {
			v.blocked = true
			break
		}
	}
	return v
}

// Request has the data of a call on which a decision depends, besides the tool.
type Request struct {
	// Session is the name of the session; empty for a call outside of any session.
	Session string
	// Turn is the name of the turn within the session; empty means the session's unnamed turn.
	Turn string
	// Principal is the caller, for policies that match principals and limits that count by
	// them; empty means an anonymous caller. A session belongs to its principal: two principals
	// that use the same name have two sessions.
	Principal string
	// Args are the arguments for the executor, and Now is the time of the call. Only rules written in Go use them. Args
	// is nil for an explanation without arguments.
	Args json.RawMessage
	Now  time.Time
}

// Admission is the outcome of [Chain.Admit].
type Admission struct {
	// Decision is allow, audit or deny, with the rule that decided. It is empty if no policy governs the call.
	Decision v1.PolicyDecision
	// Approval is the approval that the call needs before it may run; nil if it needs no approval. Decision applies in
	// addition.
	Approval *Approval
	// Budgets are the remaining budgets of the call, as in [v1.Result].
	Budgets []v1.Budget

	counters Counters
	reserved []v1.Counter
}

// Release gives back the counts that the call reserved. Call it if the executor never ran. It works even after ctx has
// ended, because the end of ctx is often why the executor did not run, and gives up after five seconds. Further calls
// do nothing.
func (a *Admission) Release(ctx context.Context) error {
	const patience = 5 * time.Second
	reserved := a.reserved
	a.reserved = nil
	if len(reserved) == 0 {
		return nil
	}
	for i := range a.Budgets {
		b := &a.Budgets[i]
		b.Used, b.Remaining = b.Used-1, b.Remaining+1
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := a.counters.Release(ctx, reserved); err != nil {
		return fmt.Errorf("release the reserved policy counts: %w", err)
	}
	return nil
}

// Admit decides on a call and reserves its counts. The error is a [*v1.PolicyError] that names the first rule that
// refuses, or a [*v1.ExecutionError] if the counters failed. In both cases nothing is reserved, the decision of the
// admission is "deny", and the caller must not make the call. store must not be nil.
func (c *Chain) Admit(ctx context.Context, store Counters, req Request) (Admission, error) {
	if c == nil {
		return Admission{}, nil
	}
	if c = c.of(req.Principal); len(c.policies) == 0 {
		return Admission{}, nil
	}
	note := v1.PolicyDecision{Decision: v1.DecisionAllow}
	if len(c.steps) == 0 {
		return Admission{Decision: note}, nil
	}
	said, refused := c.ask(ctx, req)
	keys, at := counters(c.steps, &c.tool, req)
	counts, full, err := reserve(ctx, store, keys, c.blocked || refused)
	if err != nil {
		return Admission{Decision: v1.PolicyDecision{Decision: v1.DecisionDeny}}, c.uncounted(err)
	}
	adm := Admission{Budgets: c.budgets(at, counts, full < 0 && !c.blocked && !refused)}
	for _, r := range c.steps {
		var before v1.Count
		stops := r.asks > 0 || r.alwaysRefuses()
		judged := said[r]
		if r.ask != nil {
			stops = !judged.ok
		}
		if i, kept := at[r.key]; kept {
			before = counts[i]
			stops = before.Used >= r.count.limit
		}
		switch {
		case !stops:
		case r.policy.audit:
			if note.Decision == v1.DecisionAllow {
				note = r.decision(v1.DecisionAudit)
			}
		case r.asks == 0:
			adm.Decision, adm.Approval = r.decision(v1.DecisionDeny), nil
			return adm, r.refusal(&c.tool, before, judged)
		default:
			if adm.Approval == nil {
				adm.Approval = r.approval(c.tool.Name)
			}
			adm.Approval.add(r.approvers)
		}
	}
	if full >= 0 { // and yet no limit of ours is
		return Admission{Decision: v1.PolicyDecision{Decision: v1.DecisionDeny}}, c.uncounted(errors.New("the counters say that a limit is reached, with counts below all"))
	}
	for i := range keys {
		keys[i].Ends = counts[i].Ends
	}
	adm.Decision, adm.counters, adm.reserved = note, store, keys
	return adm, nil
}

// uncounted returns the refusal of a call that could not be counted.
func (c *Chain) uncounted(err error) error {
	return &v1.ExecutionError{Tool: c.tool.Name, Phase: v1.PhaseConnect, Message: "refused, because the call could not be counted: " + err.Error(), Cause: err}
}

// budgets returns the budgets of policies that enforce their counts. at has the index of each rule's
// counter in counts, and counted reports whether the call was added to them.
func (c *Chain) budgets(at map[string]int, counts []v1.Count, counted bool) (budgets []v1.Budget) {
	for _, r := range c.steps {
		i, kept := at[r.key]
		if !kept || r.policy.audit {
			continue
		}
		n := counts[i].Used
		if counted {
			n++
		}
		budgets = append(budgets, v1.Budget{Rule: r.name, Policy: r.policy.name, Limit: r.count.limit, Used: n, Remaining: max(0, r.count.limit-n), ResetsAt: counts[i].Ends})
	}
	return budgets
}

// counters returns the persistent counters of some rules in order and without duplicates, and the index of each
// counter by the key of its rules.
func counters(rules []*rule, t *Subject, req Request) (keys []v1.Counter, at map[string]int) {
	at = map[string]int{}
	for _, r := range rules {
		if _, known := at[r.key]; r.count != nil && !known && r.count.kept(req) {
			at[r.key] = len(keys)
			keys = append(keys, r.counter(t, req))
		}
	}
	return keys, at
}

// ask evaluates the rules written in Go before anything is counted. It returns their verdicts, and whether a rule of
// an enforced policy refuses the call.
func (c *Chain) ask(ctx context.Context, req Request) (said map[*rule]verdict, refused bool) {
	said = map[*rule]verdict{}
	for _, r := range c.steps {
		if r.ask != nil {
			said[r] = r.ask(ctx, &c.tool, req)
			refused = refused || !said[r].ok && !r.policy.audit
		}
	}
	return said, refused
}

// reserve reserves the counters. If a rule refuses the call anyway, reserve only looks for a full counter, because a
// counting rule may precede that rule.
func reserve(ctx context.Context, store Counters, keys []v1.Counter, refused bool) (counts []v1.Count, full int, err error) {
	switch {
	case len(keys) == 0:
		return nil, -1, nil
	case !refused:
		counts, full, err = store.Reserve(ctx, keys)
	default:
		counts, err = store.Read(ctx, keys)
		full = firstFull(keys, counts)
	}
	if err == nil && (len(counts) != len(keys) || full >= len(keys) || full >= 0 && keys[full].Limit < 0) {
		err = fmt.Errorf("counters answered with %d counts and full counter %d for %d counters", len(counts), full, len(keys))
	}
	return counts, full, err
}

// firstFull returns the index of the first counter whose count has reached its
// limit, or -1.
func firstFull(counters []v1.Counter, counts []v1.Count) int {
	for i, n := range counts[:min(len(counts), len(counters))] {
		if l := counters[i].Limit; l >= 0 && n.Used >= l {
			return i
		}
	}
	return -1
}

// BlockedFor returns the refusal of the first rule that refuses every call of the tool by a principal; nil if some
// call may run. See [Chain.Blocked].
func (c *Chain) BlockedFor(principal string) *v1.PolicyError {
	if c == nil {
		return nil
	}
	return c.of(principal).Blocked()
}

// Blocked returns the refusal of the first rule that refuses every call of the tool, for all principals and counts
// (tool_choice none, a blocklist, an allowlist, a limit of 0); nil if no rule does. Such a tool need not be offered.
// Policies in mode audit block nothing.
func (c *Chain) Blocked() *v1.PolicyError {
	if c == nil || !c.blocked {
		return nil
	}
	return c.steps[len(c.steps)-1].refusal(&c.tool, v1.Count{}, verdict{})
}

// Guards reports whether a policy in mode enforce refuses, limits or holds the calls of the tool, for all principals.
func (c *Chain) Guards() bool {
	return c != nil && slices.ContainsFunc(c.steps, func(r *rule) bool { return !r.policy.audit && !r.policy.personal() })
}

// Concerned returns the names of the policies with a rule that may affect a principal's calls
// of the tool, and whether one of them holds each call for approval.
func (c *Chain) Concerned(principal string) (policies []string, held bool) {
	if c == nil {
		return nil, false
	}
	for _, r := range c.of(principal).steps {
		if !slices.Contains(policies, r.policy.name) {
			policies = append(policies, r.policy.name)
		}
		held = held || r.asks > 0 && !r.policy.audit
	}
	return policies, held
}

// Requires reports whether a policy in mode enforce requires a model to call a tool for a
// principal, by tool_choice required.
func (c *Chain) Requires(principal string) bool {
	return c != nil && (c.requires || c.personal && c.of(principal).requires)
}

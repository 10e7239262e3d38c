package policy

import (
	"context"
	"fmt"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

// NotAsked is the verdict of a rule that does not concern the tool.
const NotAsked = "not_asked"

// Explanation is the decision of policies on a call, with its reasons.
type Explanation struct {
	Tool      string `json:"tool"`
	Namespace string `json:"namespace"`
	// Decision is "allow", "deny", "audit" or "pending".
	Decision string `json:"decision"`
	// Rule and Policy name the deciding rule; empty if all rules allow the call.
	Rule   string `json:"rule,omitempty"`
	Policy string `json:"policy,omitempty"`
	// Matched are the names of the policies that govern the tool.
	Matched []string `json:"matched"`
	// Verdicts has the verdict of every rule of the matched policies, in the order of evaluation.
	Verdicts []Verdict `json:"verdicts"`
	// Unmatched are the policies that do not govern the call.
	Unmatched []Unmatched `json:"unmatched"`
}

// Verdict is the verdict of one rule on a call, independent of other rules.
type Verdict struct {
	Policy string `json:"policy"`
	// Rule is the field of the policy, for example "limits[0]".
	Rule string `json:"rule"`
	// Verdict is "allow", "deny", "pending" (the call waits until a person approves it),
	// "audit" (deny or pending in a policy with mode audit) or "not_asked".
	Verdict string `json:"verdict"`
	// Message is the reason for the verdict.
	Message string `json:"message"`
	// MatchedName is the name of the tool that matches a pattern of the rule; empty if no name matches, and for rules
	// without patterns.
	MatchedName string `json:"matched_name,omitempty"`
	// Limit, UsedBefore and UsedAfter are set if the rule counts the call. A call that any rule refuses or holds uses
	// nothing.
	Limit      *int64 `json:"limit,omitempty"`
	UsedBefore *int64 `json:"used_before,omitempty"`
	UsedAfter  *int64 `json:"used_after,omitempty"`
	// Source is the place of the rule in its manifest.
	Source v1.Source `json:"source,omitzero"`
}

// Unmatched is a policy that does not govern the tool.
type Unmatched struct {
	Policy string `json:"policy"`
	Reason string `json:"reason"`
	// Principals are the principals whose calls of the tool the policy governs; empty if it governs no call of the tool.
	Principals []string `json:"principals,omitempty"`
}

// Explain returns the decision of [Chain.Admit] on the same request, with the reasons, without reserving anything. It
// also evaluates the rules after the first refusal. An error means that the counters failed.
func (c *Chain) Explain(ctx context.Context, store Counters, req Request) (Explanation, error) {
	e := Explanation{Decision: v1.DecisionAllow, Matched: []string{}, Verdicts: []Verdict{}, Unmatched: []Unmatched{}}
	if c == nil {
		return e, nil
	}
	e.Tool, e.Namespace = c.tool.Name, c.tool.Namespace
	for _, p := range c.set.policies {
		if reason := p.mismatch(c.tool); reason != "" {
			e.Unmatched = append(e.Unmatched, Unmatched{Policy: p.name, Reason: reason})
		} else if reason := p.stranger(req.Principal); reason != "" {
			e.Unmatched = append(e.Unmatched, Unmatched{p.name, reason, p.match.Principals})
		} else {
			e.Matched = append(e.Matched, p.name)
		}
	}
	rules := c.rules(req.Principal)
	keys, at := counters(slices.DeleteFunc(slices.Clone(rules), func(r *rule) bool { return !r.concerns(&c.tool) }), &c.tool, req)
	var counts []v1.Count
	var err error
	if len(keys) > 0 {
		if counts, err = store.Read(ctx, keys); err == nil && len(counts) != len(keys) {
			err = fmt.Errorf("counters answered with %d counts for %d counters", len(counts), len(keys))
		}
	}
	if err != nil {
		return Explanation{}, fmt.Errorf("tool %q: read the counters of its policies: %w", c.tool.Name, err)
	}
	for _, r := range rules {
		var before v1.Count
		if i, kept := at[r.key]; kept {
			before = counts[i]
		}
		v := r.explain(ctx, &c.tool, before, req)
		if weight(v.Verdict) > weight(e.Decision) {
			e.Decision, e.Rule, e.Policy = v.Verdict, v.Rule, v.Policy
		}
		e.Verdicts = append(e.Verdicts, v)
	}
	if weight(e.Decision) < weight(v1.DecisionPending) {
		for i := range e.Verdicts {
			if e.Verdicts[i].UsedAfter != nil {
				*e.Verdicts[i].UsedAfter++
			}
		}
	}
	return e, nil
}

// weight orders decisions: the decision with the largest weight applies.
func weight(decision string) int {
	return slices.Index([]string{v1.DecisionAllow, v1.DecisionAudit, v1.DecisionPending, v1.DecisionDeny}, decision)
}

// rules returns all rules of the policies that govern the calls of a principal,
// including rules that do not concern the tool.
func (c *Chain) rules(principal string) []*rule {
	var rules []*rule
	for _, r := range c.set.rules[c.tool.Namespace] {
		if r.policy.mismatch(c.tool) == "" && r.policy.governs(principal) {
			rules = append(rules, r)
		}
	}
	return rules
}

// explain returns the verdict of the rule alone. For a refused call, UsedAfter does not count the call.
func (r *rule) explain(ctx context.Context, t *Subject, n v1.Count, req Request) Verdict {
	v := Verdict{Policy: r.policy.name, Rule: r.name, Source: r.source}
	var ok, counts bool
	var by fit
	if r.count != nil {
		by, counts = r.count.includes(t)
		v.MatchedName = by.name
	}
	switch {
	case r.ask != nil:
		said := r.ask(ctx, t, req)
		ok, v.Message = said.ok, said.why
	case r.count == nil:
		said := r.judge(t)
		ok, v.Message, v.MatchedName = said.ok, said.why, said.name
	case !counts:
		v.Verdict = NotAsked
		v.Message = fmt.Sprintf("counts only calls of %s", list(r.count.tools))
		return v
	default:
		ok = n.Used < r.count.limit
		v.Message = r.count.named(r.count.state(n.Used))
		if !ok {
			v.Message = r.count.full(n)
		}
		if by.name != "" {
			v.Message = by.as(t, v.Message)
		}
		limit, before, after := r.count.limit, n.Used, n.Used
		v.Limit, v.UsedBefore, v.UsedAfter = &limit, &before, &after
	}
	switch {
	case ok:
		v.Verdict = v1.DecisionAllow
	case r.policy.audit:
		v.Verdict = v1.DecisionAudit
	case r.asks > 0:
		v.Verdict = v1.DecisionPending
	default:
		v.Verdict = v1.DecisionDeny
	}
	return v
}

package policy

import (
	"context"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// verdict is the judgement of a rule on a tool.
type verdict struct {
	ok   bool
	why  string
	name string // name of the tool that matches a pattern of the rule; may be ""
}

// rule is a field of a policy. It judges the names of the tool, counts calls or judges
// each call: exactly one of judge, count and ask is set.
type rule struct {
	// field is the JSON pointer of the rule, for example "/spec/limits/0".
	field string
	// judge decides whether the tool may be called, by the tool alone.
	judge func(*Subject) verdict
	count *count
	// ask evaluates a rule written in Go.
	ask func(context.Context, *Subject, Request) verdict
	// idle reports that the rule never refuses a call.
	idle bool
	// asks is the maximum time for which the rule holds a call for approval. A rule with asks does not refuse calls.
	asks time.Duration
	// approvers may decide on held calls; nil if the policy names none.
	approvers *v1.Approvers

	// Set by bind.
	name   string // the field as users write it: "limits[0]"
	policy *policy
	source v1.Source
	key    string // prefix of the counter's key that is the same for all calls
	bound  int64  // limit of the counter, or -1 if calls are only counted
}

// bind makes the rule part of policy p.
func (r *rule) bind(p *policy, manifest *v1.ToolPolicy) {
	r.policy = p
	r.name = ruleName(r.field)
	r.source = manifest.Field(r.field)
	if r.count != nil {
		id := r.count.id
		if id == "" {
			id = r.name
		}
		r.key = p.key + "|" + id + "|" + r.count.spanAndBy() + "|"
		if r.bound = r.count.limit; p.audit {
			r.bound = -1
		}
	}
}

// ruleName returns the field of a rule as users write it.
func ruleName(field string) string { return strings.TrimPrefix(v1.FieldPath(field), "spec.") }

// share sets the lowest limit for rules of a policy that count the same calls, because they share a counter.
func share(rules []*rule) {
	least := map[string]int64{}
	for _, r := range rules {
		if bound, known := least[r.key]; !known || r.bound < bound {
			least[r.key] = r.bound
		}
	}
	for _, r := range rules {
		r.bound = least[r.key]
	}
}

// concerns reports whether the rule counts, refuses or holds calls of the tool.
func (r *rule) concerns(t *Subject) bool {
	if r.count != nil {
		_, ok := r.count.includes(t)
		return ok
	}
	return r.ask != nil || !r.judge(t).ok
}

// alwaysRefuses reports whether the rule, which concerns the tool, refuses every
// call regardless of counts.
func (r *rule) alwaysRefuses() bool {
	return r.asks == 0 && r.ask == nil && (r.count == nil || r.count.limit == 0)
}

// blocks reports whether no call that the rule's policy governs can run.
func (r *rule) blocks() bool { return !r.policy.audit && r.alwaysRefuses() }

// refusal returns the error for a call that the rule refuses.
func (r *rule) refusal(t *Subject, n v1.Count, said verdict) *v1.PolicyError {
	e := &v1.PolicyError{Tool: t.Name, Policy: r.policy.name, Rule: r.name, Source: r.source}
	switch {
	case r.ask != nil:
		e.Message = said.why
		return e
	case r.count == nil:
		e.Message = r.judge(t).why
		return e
	}
	e.Limit, e.Used = r.count.limit, n.Used
	e.Message = r.count.full(n)
	return e
}

func (r *rule) decision(d string) v1.PolicyDecision {
	return v1.PolicyDecision{Decision: d, Rule: r.name, Policy: r.policy.name}
}

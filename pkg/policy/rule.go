package policy

import (
	"context"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// verdict is what a rule that judges says of a tool.
type verdict struct {
	ok   bool
	why  string
	name string // of the tool, by which it fits a pattern of the rule; "" when none does
}

// rule is one field of one policy. It judges the tool's names, counts calls or asks
// about each call: exactly one of judge, count and ask is set.
type rule struct {
	// field is the JSON pointer of the rule, for example "/spec/limits/0".
	field string
	// judge says whether the tool may be called, and why. It depends on nothing else.
	judge func(*Subject) verdict
	count *count
	// ask is the judgement of a rule that is written in Go.
	ask func(context.Context, *Subject, Request) verdict
	// idle says that the rule refuses no call, whatever the call.
	idle bool
	// asks makes a rule that judges hold a call for a person instead of refusing it,
	// for at most this long.
	asks time.Duration
	// approvers are who may decide on what it holds; nil when the policy does not say.
	approvers *v1.Approvers

	// Set by bind.
	name   string // the field as users write it: "limits[0]"
	policy *policy
	source v1.Source
	key    string // the counters' key up to the part that differs from call to call
	bound  int64  // of the counter: the limit, or -1 when it is only counted
}

// bind makes the rule one of policy p.
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

// ruleName is the field of a rule as users write it.
func ruleName(field string) string { return strings.TrimPrefix(v1.FieldPath(field), "spec.") }

// share makes rules of one policy that count the same calls, and so have one counter, agree
// on its bound: the least of theirs.
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

// concerns reports whether calls of the tool need to ask the rule at all: it
// counts them, refuses them or holds them.
func (r *rule) concerns(t *Subject) bool {
	if r.count != nil {
		_, ok := r.count.includes(t)
		return ok
	}
	return r.ask != nil || !r.judge(t).ok
}

// alwaysRefuses reports whether the rule, which concerns the tool, refuses each
// of its calls whatever was counted before.
func (r *rule) alwaysRefuses() bool {
	return r.asks == 0 && r.ask == nil && (r.count == nil || r.count.limit == 0)
}

// blocks reports whether the calls that the rule's policy governs can never pass.
func (r *rule) blocks() bool { return !r.policy.audit && r.alwaysRefuses() }

// refusal is the error for a call that the rule refuses.
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

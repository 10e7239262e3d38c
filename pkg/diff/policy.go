package diff

import (
	"cmp"
	"context"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

// policy judges a policy; before is nil for a new one, and after for a deleted one.
func (j *judgement) policy(ctx context.Context, before, after *v1.ToolPolicy) {
	j.abandoned = policy.Abandoned(before, after)
	if before != nil && after != nil {
		j.byRules([]rule{{"", "", []string{"/spec"}}})
		if j.first("/spec") == "" {
			return
		}
	}
	tighter, looser := policy.Compare(ctx, before, after, j.world.tools)
	if j.isNew(tighter) { // calls of an existing tool are better evidence
		tighter, _ = policy.Compare(ctx, before, after, j.world.older)
	}
	if j.isNew(tighter) {
		j.add(Tighter, j.ruleAt(tighter), "calls of a tool that is new are "+verb(tighter.Now)+inWords(tighter), nil)
		tighter = nil
	}
	j.cases(j.ruleAt, tighter, looser)
	at := j.first("/spec")
	choice := func(p *v1.ToolPolicy) bool {
		return p != nil && p.Spec.ToolChoice == v1.ToolChoiceRequired && p.Spec.Mode != v1.PolicyAudit
	}
	switch was, is := choice(before), choice(after); {
	case !was && is:
		j.add(Tighter, at, "a model must call a tool", nil)
	case was && !is:
		j.add(Looser, at, "a model may now answer without calling a tool", nil)
	case len(j.reasons) > 0:
	case before == nil || after == nil:
		j.add(Unknown, "", "no call was found to which the policy applies", nil)
	case policy.Same(&before.Spec, &after.Spec):
		j.add(Compatible, at, "the rules are equivalent", nil)
	default:
		j.add(Unknown, at, "no call was found that gets a different decision", nil)
	}
}

// isNew reports whether a case is about a tool that this change adds: no call of it was allowed before.
func (j *judgement) isNew(c *policy.Case) bool {
	return c != nil && j.world.created[v1.Key{Kind: v1.KindTool, Namespace: c.Namespace, Name: c.Tool}]
}

// ruleAt returns the changed field that explains a case: the field of its rule, or the first changed
// field.
func (j *judgement) ruleAt(c *policy.Case) string {
	field, _, _ := strings.Cut(c.Rule, "[")
	return cmp.Or(j.first("/spec/"+field), j.first("/spec"))
}

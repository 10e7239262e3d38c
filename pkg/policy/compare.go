package policy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// Case is a call that gets a different decision than before.
type Case struct {
	Tool      string `json:"tool"`
	Namespace string `json:"namespace"`
	// Principal is the caller; empty for an anonymous one.
	Principal string `json:"principal,omitempty"`
	// Labels are the labels of the tool if it does not exist in the manifests.
	Labels map[string]string `json:"labels,omitempty"`
	// Earlier is the number of earlier calls, and Where describes how they relate to this call.
	Earlier int64  `json:"earlier_calls,omitempty"`
	Where   string `json:"earlier_where,omitempty"`
	// Was and Now are the decisions: allow, audit, pending or deny.
	Was string `json:"was"`
	Now string `json:"now"`
	// Rule is the field of the policy that decides now, or that decided before if no rule decides now.
	Rule string `json:"rule,omitempty"`
	// Message is the reason for the decision.
	Message string `json:"message,omitempty"`
}

// Compare finds calls that show the effect of a policy change: one call that is treated more strictly than before, and
// one that is treated less strictly; nil if no such call was found. If before is nil, the policy is new; if after is
// nil, the policy is removed. The decisions are those of [Chain.Admit] for this policy alone.
//
// Compare uses tools from known, and invents tools for patterns without a matching tool. The earlier calls of a case
// are all alike: they have the same turn, session, principal, tool and time as the call itself, or differ in one of
// these.
func Compare(ctx context.Context, before, after *v1.ToolPolicy, known *Tools) (tighter, looser *Case) {
	c := &comparison{was: newJudge(before), now: newJudge(after)}
	for _, p := range []*v1.ToolPolicy{before, after} {
		if p != nil {
			c.policies = append(c.policies, p)
		}
	}
	if len(c.policies) == 0 {
		return nil, nil
	}
	c.subjects = c.sample(known)
	c.search(ctx)
	return c.tighter, c.looser
}

// CompareTools does for a change of a tool what [Compare] does for a change of a policy: it finds calls that get a
// different decision because the tool has other labels or another server.
func CompareTools(ctx context.Context, policies []*v1.ToolPolicy, before, after Subject) (tighter, looser *Case) {
	set := Compile(policies)
	c := &comparison{policies: policies, subjects: []sampled{{was: before, now: after, real: true}}}
	c.was, c.now = &judge{set: set}, &judge{set: set}
	c.search(ctx)
	return c.tighter, c.looser
}

type comparison struct {
	was, now        *judge
	policies        []*v1.ToolPolicy
	subjects        []sampled
	tighter, looser *Case
}

// sampled is a tool whose calls are compared before and after the change.
type sampled struct {
	was, now Subject
	real     bool // the manifests contain the tool
}

// judge is one side of the comparison.
type judge struct{ set *Set }

func newJudge(p *v1.ToolPolicy) *judge { return &judge{set: Compile([]*v1.ToolPolicy{p})} }

// maxTried limits the number of calls that a comparison tries.
const maxTried = 200_000

func (c *comparison) search(ctx context.Context) {
	bounds, principals := c.bounds(), c.principals()
	left := maxTried
	for i, s := range c.subjects {
		for _, principal := range principals {
			for _, r := range relations(c.subjects, i, principal, len(bounds) > 1) {
				for _, n := range bounds {
					if (n == 0) != (r.where == "") {
						continue
					}
					if left--; left < 0 || ctx.Err() != nil || c.tighter != nil && c.looser != nil {
						return
					}
					if c.try(ctx, s, r, principal, n) {
						break
					}
				}
			}
		}
	}
}

// relation describes how the earlier calls relate to the tried call.
type relation struct {
	where   string // empty if there are no earlier calls
	earlier Request
	ago     time.Duration // time since the earlier calls
	tool    *sampled      // nil means the same tool
}

var (
	tried   = Request{Session: "session", Turn: "turn"}
	triedAt = time.Date(2000, 1, 1, 12, 30, 0, 0, time.UTC)
)

func relations(all []sampled, at int, principal string, counts bool) []relation {
	probe := tried
	probe.Principal = principal
	list := []relation{{earlier: probe}}
	if !counts {
		return list
	}
	add := func(where string, change func(*relation)) {
		r := relation{where: where, earlier: probe}
		change(&r)
		list = append(list, r)
	}
	add("in the same turn", func(*relation) {})
	add("in other turns of the session", func(r *relation) { r.earlier.Turn = "other" })
	add("in other sessions", func(r *relation) { r.earlier.Session, r.earlier.Turn = "other", "other" })
	add("in sessions of other principals", func(r *relation) {
		r.earlier = Request{Session: "other", Turn: "other", Principal: "somebody-else"}
	})
	add("in other minutes", func(r *relation) { r.ago = time.Minute })
	add("in other hours", func(r *relation) { r.ago = time.Hour })
	add("on other days", func(r *relation) { r.ago = 24 * time.Hour })
	const mostOthers = 8
	for i := range all {
		if i == at || len(list) > mostOthers+8 {
			continue
		}
		list = append(list, relation{where: "of " + all[i].now.Name + " in the same turn", earlier: probe, tool: &all[i]})
	}
	return list
}

// try decides on a call after n earlier calls, on both sides, and reports whether both sides refuse it. Then no
// further calls can run.
func (c *comparison) try(ctx context.Context, s sampled, r relation, principal string, n int64) (both bool) {
	probe := tried
	probe.Principal = principal
	earlier := s
	if r.tool != nil {
		earlier = *r.tool
	}
	was, ok := c.was.decide(ctx, s.was, probe, earlier.was, r, n)
	now, ok2 := c.now.decide(ctx, s.now, probe, earlier.now, r, n)
	if !ok || !ok2 {
		return true
	}
	switch {
	case now.stricter(was) && c.tighter == nil:
		c.tighter = s.caseOf(principal, r, n, was, now)
	case was.stricter(now) && c.looser == nil:
		c.looser = s.caseOf(principal, r, n, was, now)
	}
	return was.decision == v1.DecisionDeny && now.decision == v1.DecisionDeny
}

func (s sampled) caseOf(principal string, r relation, n int64, was, now outcome) *Case {
	c := &Case{Tool: s.now.Name, Namespace: s.now.Namespace, Principal: principal, Earlier: n, Was: was.decision, Now: now.decision, Rule: now.rule, Message: now.message}
	if n > 0 {
		c.Where = r.where
	}
	if c.Rule == "" {
		c.Rule, c.Message = was.rule, was.message
	}
	if !s.real {
		c.Labels = s.now.Labels
	}
	if was.decision == now.decision {
		c.Message = "a pending call expires after " + clip.Duration(now.timeout) + " instead of " + clip.Duration(was.timeout)
	}
	return c
}

// outcome is the decision of one side on a call.
type outcome struct {
	decision, rule, message string
	timeout                 time.Duration // timeout of a pending call
}

// stricter reports whether this side treats the call more strictly than the other side. The decision audit counts as
// allow, because the call runs.
func (o outcome) stricter(than outcome) bool {
	rank := func(o outcome) int { return max(weight(o.decision), weight(v1.DecisionAudit)) }
	if rank(o) != rank(than) {
		return rank(o) > rank(than)
	}
	return o.decision == v1.DecisionPending && o.timeout < than.timeout
}

// decide returns the decision of the side on a call after n earlier calls. The last result is false if the earlier
// calls would not have run.
func (j *judge) decide(ctx context.Context, tool Subject, req Request, earlierTool Subject, r relation, n int64) (_ outcome, ok bool) {
	counts, before := &supposed{now: triedAt}, triedAt.Add(-r.ago)
	if n > 0 {
		mine, theirs := &supposed{note: true, keys: map[string]bool{}, now: triedAt}, &supposed{note: true, keys: map[string]bool{}, now: before}
		j.ask(ctx, tool, req, mine)
		j.ask(ctx, earlierTool, r.earlier, theirs)
		shared := maps.Clone(theirs.keys)
		maps.DeleteFunc(shared, func(k string, _ bool) bool { return !mine.keys[k] })
		counts.keys, counts.n, counts.now = shared, n-1, before
		if earlierTool.Name != tool.Name { // the earlier calls may share counters that this call does not use
			counts.keys = theirs.keys
		}
		if j.ask(ctx, earlierTool, r.earlier, counts).decision == v1.DecisionDeny {
			return outcome{}, false
		}
		counts.keys, counts.n, counts.now = shared, n, triedAt
	}
	return j.ask(ctx, tool, req, counts), true
}

func (j *judge) ask(ctx context.Context, tool Subject, req Request, counters Counters) outcome {
	admission, err := j.set.For(tool).Admit(ctx, counters, req)
	var refused *v1.PolicyError
	switch wait := admission.Approval; {
	case errors.As(err, &refused):
		message, _, _ := strings.Cut(refused.Message, "; the next ")
		return outcome{decision: v1.DecisionDeny, rule: refused.Rule, message: message}
	case err != nil:
		return outcome{decision: v1.DecisionDeny, message: err.Error()}
	case wait != nil:
		return outcome{decision: v1.DecisionPending, rule: wait.Rule, message: "a person must approve it", timeout: wait.Timeout}
	case admission.Decision.Decision == "":
		return outcome{decision: v1.DecisionAllow}
	}
	return outcome{decision: admission.Decision.Decision, rule: admission.Decision.Rule}
}

// supposed are simulated counters. Counters in keys have the count n, and all others 0. With note, all counts are 0,
// and the keys are recorded.
type supposed struct {
	now  time.Time
	note bool
	keys map[string]bool
	n    int64
}

func (s *supposed) Reserve(ctx context.Context, counters []v1.Counter) (counts []v1.Count, full int, err error) {
	counts, err = s.Read(ctx, counters)
	return counts, firstFull(counters, counts), err
}

func (s *supposed) Release(context.Context, []v1.Counter) error { return nil }

func (s *supposed) Read(_ context.Context, counters []v1.Counter) ([]v1.Count, error) {
	counts := make([]v1.Count, len(counters))
	for i, c := range counters {
		counts[i].Ends = c.End(s.now)
		key := c.Key + "|" + counts[i].Ends.String()
		switch {
		case s.note:
			s.keys[key] = true
		case s.keys[key]:
			counts[i].Used = s.n
		}
	}
	return counts, nil
}

// bounds returns the numbers of earlier calls at which a decision can change, starting with 0.
func (c *comparison) bounds() []int64 {
	all := []int64{0}
	for _, p := range c.policies {
		for _, n := range []*int64{p.Spec.MaxToolCallsPerTurn, p.Spec.MaxTotalToolCalls} {
			if n != nil {
				all = append(all, max(0, *n))
			}
		}
		for _, l := range p.Spec.Limits {
			if l.MaxCalls != nil {
				all = append(all, max(0, *l.MaxCalls))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// principals returns the callers that the policies distinguish, starting with the anonymous caller.
func (c *comparison) principals() []string {
	all := []string{""}
	for _, p := range c.policies {
		if p.Spec.Match == nil {
			continue
		}
		for _, pattern := range p.Spec.Match.Principals {
			name, star := strings.CutSuffix(pattern, "*")
			if star {
				name += "somebody"
			}
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

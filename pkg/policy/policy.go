// Package policy decides which tool calls go through: it compiles the
// [v1.ToolPolicy] objects of a set of manifests into one [Chain] a tool, and a
// chain admits or refuses calls.
//
//	set := policy.Compile(policies)
//	chain := set.For(policy.Subject{Namespace: "default", Name: "pay-invoice"})
//	admission, err := chain.Admit(ctx, policy.NewMemoryCounters(nil), policy.Request{Session: "s1"})
//	if err != nil {
//		return err // a *v1.PolicyError, or the counters failed
//	}
//	// ... run the tool; when it never ran: admission.Release(ctx)
//
// # Which policies apply
//
// A policy governs the tools of its own namespace, narrowed by spec.match to some
// tools and to the calls of some principals. All policies that match a call apply
// to it, and one refusal is enough.
//
// # Order
//
// Rules are asked kind by kind: tool_choice, max_tool_calls_per_turn, blocklist,
// max_total_tool_calls, allowlist, limits, rules that are written in Go ([Rule]),
// require_approval. Within a kind, policies are asked in the order of their names. The first rule that refuses is
// the one that is named. require_approval does not refuse: [Admission.Approval]
// says that a person has to approve the call before it may run.
//
// # Counting
//
// A rule either judges the names of the tool or counts calls. All counts of a
// call, of all policies, are reserved in one step or not at all, so a refused
// call uses up no budget, and calls that run side by side cannot pass a limit
// together. [Admission.Release] gives the reservation back when the executor
// never ran. When the counters fail, the call is refused.
//
// turn and session count within one session, which is one of its principal; a call
// that names no turn is in the session's one unnamed turn, and a call that names no
// session is a session of its own, of which nothing is kept. minute, hour and day are
// calendar spans in UTC and count the calls of all sessions. spec.limits[].by counts
// by something else: by principal, the sessions of each principal are one.
//
// A limit is known by its name, or else by the tools that it counts; its span and by
// belong to that, its place and max_calls do not. Two limits of one policy that count
// the same calls have one count. [Abandoned] says which counts an edit leaves behind.
//
// # Names
//
// A tool is what it calls: a rule fits it by its own name, with and without its
// namespace, by the name that clients know it by, and by each name of the server's tool
// behind it.
//
// # Audit
//
// A policy with mode audit never refuses. It counts every call that goes through,
// those beyond its limits too, and the decision says "audit" with the first rule
// that would have refused. A refusal by another policy wins.
package policy

import (
	"cmp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Set is a compiled set of policies. It never changes and may be used by many
// goroutines at once.
type Set struct {
	policies []*policy // by namespace, then name
	// manifests are what policies were made of, one for each.
	manifests []*v1.ToolPolicy
	goRules   []Rule
	rules     map[string][]*rule // by namespace, in the order in which they are asked
}

// Compile prepares policies for use. Nil ones are left out. The policies should
// be free of violations and of distinct names; a limit or a choice that no reader
// would have let through refuses every call.
//
// The rules are those that are written in Go. A policy that has one which is not among
// them refuses every call.
func Compile(policies []*v1.ToolPolicy, rules ...Rule) *Set { return compile(policies, rules, nil) }

// compile is Compile for policies that named, when it is not nil, gives other names.
func compile(policies []*v1.ToolPolicy, rules []Rule, named func(*policy, *v1.ToolPolicy)) *Set {
	sorted := slices.DeleteFunc(slices.Clone(policies), func(p *v1.ToolPolicy) bool { return p == nil })
	slices.SortStableFunc(sorted, func(a, b *v1.ToolPolicy) int {
		return cmp.Or(strings.Compare(a.Namespace(), b.Namespace()), strings.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	s := &Set{manifests: sorted, goRules: rules, rules: map[string][]*rule{}}
	for _, p := range sorted {
		made := newPolicy(p)
		if named != nil {
			named(made, p)
		}
		s.policies = append(s.policies, made)
	}
	for _, kind := range kinds(rules) {
		for i, p := range sorted {
			made := kind.make(&p.Spec)
			for _, r := range made {
				r.bind(s.policies[i], p)
			}
			share(made)
			s.rules[p.Namespace()] = append(s.rules[p.Namespace()], made...)
		}
	}
	return s
}

// For returns the chain of rules that govern the tool. It is never nil. The
// chain keeps t.Labels, which must not change any more.
func (s *Set) For(t Subject) *Chain {
	c := &Chain{set: s, tool: t}
	governs := map[*policy]bool{}
	for _, p := range s.policies {
		if p.namespace == t.Namespace && p.mismatch(t) == "" {
			governs[p] = true
			c.policies = append(c.policies, p)
			c.personal = c.personal || p.personal()
			c.requires = c.requires || p.requires && !p.personal()
		}
	}
	for _, r := range s.rules[t.Namespace] {
		if !governs[r.policy] || !r.concerns(&t) {
			continue
		}
		if c.steps = append(c.steps, r); r.blocks() && !r.policy.personal() {
			c.blocked = true
			break
		}
	}
	c.steps = slices.Clip(c.steps)
	return c
}

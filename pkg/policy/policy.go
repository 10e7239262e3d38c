// Package policy decides which tool calls are allowed. It compiles the [v1.ToolPolicy] objects of a set of manifests
// into one [Chain] for each tool, and a chain admits or refuses calls.
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
// A policy governs the tools of its own namespace; spec.match restricts it to some tools and to the calls of some
// principals. All matching policies apply to a call, and a single refusal is enough.
//
// # Order
//
// Rules are evaluated kind by kind: tool_choice, max_tool_calls_per_turn, blocklist, max_total_tool_calls, allowlist,
// limits, rules written in Go ([Rule]), require_approval. Within a kind, policies are evaluated in the order of their
// names. The error names the first rule that refuses. require_approval does not refuse: with [Admission.Approval], a
// person must approve the call before it may run.
//
// # Counting
//
// A rule either matches the names of the tool or counts calls. All counts of a call, of all policies, are reserved in
// one step or not at all, so a refused call uses no budget, and concurrent calls cannot exceed a limit together.
// [Admission.Release] gives the reservation back if the executor never ran. If the counters fail, the call is refused.
//
// turn and session count within a session, and a session belongs to its principal. A call without a turn is in the
// session's unnamed turn. A call without a session is a session of its own, whose counts are not kept. minute, hour
// and day are calendar spans in UTC and count the calls of all sessions. spec.limits[].by changes what is counted
// together: by principal, all sessions of a principal count as one.
//
// A limit is identified by its name, or else by the tools that it counts, and by its span and "by"; its position and
// max_calls do not matter. Two limits of a policy that count the same calls share a count. [Abandoned] returns the
// counts that an edit discards.
//
// # Names
//
// A rule matches a tool by its own name, with and without its namespace, by the name that clients use, and by each
// name of the tool of an MCP server that it calls.
//
// # Audit
//
// A policy with mode audit never refuses. It counts every call that runs, even beyond its limits, and the decision is
// "audit" with the first rule that would have refused. A refusal by another policy takes precedence.
package policy

import (
	"cmp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Set is a compiled set of policies. It never changes and is safe for concurrent use.
type Set struct {
	policies []*policy // sorted by namespace and name
	// manifests are the sources of policies, in the same order.
	manifests []*v1.ToolPolicy
	goRules   []Rule
	rules     map[string][]*rule // by namespace, in the order of evaluation
}

// Compile prepares policies for use, and skips nil ones. The policies should be
// valid and have distinct names; an invalid limit or choice refuses every call.
//
// rules are the rules written in Go. A policy with an unknown rule refuses every
// call.
func Compile(policies []*v1.ToolPolicy, rules ...Rule) *Set { return compile(policies, rules, nil) }

// compile is Compile with a function named, which may change the names of policies. named may be nil.
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

// For returns the chain of rules that govern the tool. The chain is never nil. It keeps t.Labels, which must not
// change afterwards.
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

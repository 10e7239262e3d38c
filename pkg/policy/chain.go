package policy

import (
	"context"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Chain is the rules that govern one tool. It never changes and may be used by
// many goroutines at once. A nil chain, like one that no policy governs, allows
// every call.
type Chain struct {
	set      *Set
	tool     Subject
	governed bool // some policy matches, be it one without rules
	// steps are the rules that can matter to a call, in the order in which they are
	// asked: counts, and refusals by name. It ends at the first rule that refuses always.
	steps    []*rule
	counting int // how many steps count
	blocked  bool
}

// Request is what a decision depends on beside the tool.
type Request struct {
	// Session names the conversation; empty is a session of its own.
	Session string
	// Turn names the turn within the session; empty is the session's unnamed turn.
	Turn string
	// Principal is who asks. It is there for rules that match principals; counts
	// are not kept apart by it.
	Principal string
	// Now is the time of the call, which minute, hour and day depend on; zero
	// means time.Now().
	Now time.Time
}

// Admission is the outcome of [Chain.Admit].
type Admission struct {
	// Decision says allow, audit or deny, and the rule that decided. It is empty
	// when no policy governs the tool.
	Decision v1.PolicyDecision

	counters Counters
	reserved []v1.Counter
}

// Release gives back what the call reserved, for a call whose executor never ran.
// It does its work even when ctx has ended, which is often why the executor did
// not run, and gives up after five seconds. Further calls do nothing.
func (a *Admission) Release(ctx context.Context) error {
	const patience = 5 * time.Second
	reserved := a.reserved
	a.reserved = nil
	if len(reserved) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := a.counters.Release(ctx, reserved); err != nil {
		return fmt.Errorf("give back the reserved policy counts: %w", err)
	}
	return nil
}

// Admit decides on a call and reserves its counts. The error is a
// [*v1.PolicyError] that names the first rule that refuses, or says that the
// counters failed; in both cases nothing is reserved, the call must not go on,
// and the decision of the admission is "deny". counters must not be nil.
func (c *Chain) Admit(ctx context.Context, counters Counters, req Request) (Admission, error) {
	if c == nil || !c.governed {
		return Admission{}, nil
	}
	note := v1.PolicyDecision{Decision: v1.DecisionAllow}
	if len(c.steps) == 0 {
		return Admission{Decision: note}, nil
	}
	if req.Now.IsZero() {
		req.Now = time.Now()
	}
	keys := c.counters(req)
	used, full, err := c.reserve(ctx, counters, keys)
	if err != nil {
		err = fmt.Errorf("tool %q: refused, because its policies could not count the call: %w", c.tool.Name, err)
		return Admission{Decision: v1.PolicyDecision{Decision: v1.DecisionDeny}}, err
	}
	kept := 0 // index in keys and used of the next step that has a kept count
	for _, r := range c.steps {
		var before int64
		refuses := r.alwaysRefuses()
		if r.count != nil && r.count.kept(req) {
			before = used[kept]
			refuses = kept == full || r.policy.audit && before >= r.count.limit
			kept++
		}
		switch {
		case !refuses:
		case !r.policy.audit:
			return Admission{Decision: r.decision(v1.DecisionDeny)}, r.refusal(c.tool.Name, before, req)
		case note.Decision == v1.DecisionAllow:
			note = r.decision(v1.DecisionAudit)
		}
	}
	return Admission{Decision: note, counters: counters, reserved: keys}, nil
}

// counters returns the kept counters of the steps, in order.
func (c *Chain) counters(req Request) []v1.Counter {
	if c.counting == 0 {
		return nil
	}
	keys := make([]v1.Counter, 0, c.counting)
	for _, r := range c.steps {
		if r.count != nil && r.count.kept(req) {
			keys = append(keys, r.counter(req))
		}
	}
	return keys
}

// reserve reserves the counters. When a rule refuses the call anyway, it only
// looks for a full one, since a count may stand before that rule.
func (c *Chain) reserve(ctx context.Context, counters Counters, keys []v1.Counter) (used []int64, full int, err error) {
	switch {
	case len(keys) == 0:
		return nil, -1, nil
	case !c.blocked:
		used, full, err = counters.Reserve(ctx, keys)
	default:
		used, err = counters.Read(ctx, keys)
		full = firstFull(keys, used)
	}
	if err == nil && (len(used) != len(keys) || full >= len(keys) || full >= 0 && keys[full].Limit < 0) {
		err = fmt.Errorf("counters answered with %d counts and full counter %d for %d counters", len(used), full, len(keys))
	}
	return used, full, err
}

// firstFull returns the index of the first counter whose count has reached its
// limit, or -1.
func firstFull(counters []v1.Counter, used []int64) int {
	for i, n := range used[:min(len(used), len(counters))] {
		if l := counters[i].Limit; l >= 0 && n >= l {
			return i
		}
	}
	return -1
}

// Blocked returns the refusal of the first rule that refuses every call of the
// tool whatever was counted before (tool_choice none, a blocklist, an allowlist,
// a limit of 0), or nil when there is none. Such a tool need not be offered.
// Policies in mode audit block nothing.
func (c *Chain) Blocked() *v1.PolicyError {
	if c == nil || !c.blocked {
		return nil
	}
	return c.steps[len(c.steps)-1].refusal(c.tool.Name, 0, Request{})
}

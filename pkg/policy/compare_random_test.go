package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

// TestCompareReplays replays random cases against both policies with real counters, and checks the decisions of each
// case.
func TestCompareReplays(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(all ...string) string { return all[rng.IntN(len(all))] }
	patterns := func() []string {
		var out []string
		for range rng.IntN(3) {
			out = append(out, pick("a", "b", "ab", "a*", "*", "fs__r*", "default/a"))
		}
		return out
	}
	number := func() *int64 {
		if rng.IntN(3) > 0 {
			return nil
		}
		n := rng.Int64N(4)
		return &n
	}
	random := func() *v1.ToolPolicy {
		p := policyOf(t, `{}`)
		p.Spec = v1.ToolPolicySpec{Blocklist: patterns(), RequireApproval: patterns(), MaxTotalToolCalls: number(), MaxToolCallsPerTurn: number()}
		if rng.IntN(2) == 0 {
			p.Spec.Allowlist = append(patterns(), "a*")
		}
		for range rng.IntN(3) {
			n := rng.Int64N(4)
			l := v1.Limit{Tools: patterns(), MaxCalls: &n, Per: pick("turn", "session", "minute", "hour", "day")}
			if rng.IntN(2) == 0 {
				l.By = []string{pick("session", "principal", "tool", "all")}
			}
			p.Spec.Limits = append(p.Spec.Limits, l)
		}
		if rng.IntN(4) == 0 {
			p.Spec.Match = &v1.Match{Principals: []string{pick("ann", "t-*", "*")}}
		}
		return p
	}
	known := policy.NewTools([]policy.Subject{{Namespace: "default", Name: "a"}, {Namespace: "default", Name: "abc"}, {Namespace: "default", Name: "z"}})
	cases := 0
	for range 250 {
		before, after := random(), random()
		tighter, looser := policy.Compare(t.Context(), before, after, known)
		for _, c := range []*policy.Case{tighter, looser} {
			if c == nil {
				continue
			}
			cases++
			was, now := replay(t, before, c), replay(t, after, c)
			if was != c.Was || now != c.Now {
				a, _ := json.Marshal(before.Spec)
				b, _ := json.Marshal(after.Spec)
				t.Fatalf("%s\n%s\n%+v: replayed %s and %s", a, b, c, was, now)
			}
		}
		if policy.Same(&before.Spec, &after.Spec) && (tighter != nil || looser != nil) {
			t.Fatalf("the same, and yet %+v %+v", tighter, looser)
		}
	}
	if cases < 100 {
		t.Errorf("only %d cases", cases)
	}
}

// replay makes the earlier calls of a case and then the call itself.
func replay(t *testing.T, p *v1.ToolPolicy, c *policy.Case) string {
	t.Helper()
	now := time.Date(2024, 5, 5, 12, 30, 0, 0, time.UTC)
	set, counters := policy.Compile([]*v1.ToolPolicy{p}), policy.NewMemoryCounters(func() time.Time { return now })
	call := func(tool string, r policy.Request) string {
		s := policy.Subject{Namespace: "default", Name: tool}
		if server, remote, ok := strings.Cut(tool, "__"); ok {
			s.Server, s.Remote, s.Discovered, s.Bare = server, remote, true, true
		}
		a, err := set.For(s).Admit(t.Context(), counters, r)
		var refused *v1.PolicyError
		switch {
		case errors.As(err, &refused):
			return v1.DecisionDeny
		case err != nil:
			t.Fatal(err)
		case a.Approval != nil:
			return v1.DecisionPending // an approved call counts
		case a.Decision.Decision == "":
			return v1.DecisionAllow
		}
		return a.Decision.Decision
	}
	probe := policy.Request{Session: "s", Turn: "t", Principal: c.Principal}
	at := now
	for i := range c.Earlier {
		r, tool, other := probe, c.Tool, fmt.Sprintf("other-%d", i)
		now = at
		switch back := time.Duration(c.Earlier - i); c.Where { // earlier calls have earlier times
		case "in the same turn":
		case "in other turns of the session":
			r.Turn = other
		case "in other sessions":
			r.Session, r.Turn = other, other
		case "in sessions of other principals":
			r.Session, r.Turn, r.Principal = other, other, "somebody-else-"+other
		case "in other minutes":
			now = at.Add(-back * time.Minute)
		case "in other hours":
			now = at.Add(-back * time.Hour)
		case "on other days":
			now = at.Add(-back * 24 * time.Hour)
		default:
			tool = strings.TrimSuffix(strings.TrimPrefix(c.Where, "of "), " in the same turn")
		}
		call(tool, r)
	}
	now = at
	return call(c.Tool, probe)
}

package policy

import (
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

func TestCounterKeys(t *testing.T) {
	spec := v1.ToolPolicySpec{
		MaxToolCallsPerTurn: n(1), MaxTotalToolCalls: n(2),
		Limits: []v1.Limit{{MaxCalls: n(3), Per: v1.PerMinute}, {MaxCalls: n(4), Per: v1.PerHour}, {MaxCalls: n(5), Per: v1.PerDay}, {MaxCalls: n(6), Per: v1.PerTurn}},
	}
	req := Request{Session: "user|7/a", Turn: "1:2"}
	want := []v1.Counter{
		{Key: "default/p|max_tool_calls_per_turn|turn|user%7C7%2Fa|1%3A2", Limit: 1, Idle: 720 * time.Hour},
		{Key: "default/p|max_total_tool_calls|session|user%7C7%2Fa", Limit: 2, Idle: 720 * time.Hour},
		{Key: "default/p|limits:all|minute", Limit: 3, Window: time.Minute},
		{Key: "default/p|limits:all|hour", Limit: 4, Window: time.Hour},
		{Key: "default/p|limits:all|day", Limit: 5, Window: 24 * time.Hour},
		{Key: "default/p|limits:all|turn|user%7C7%2Fa|1%3A2", Limit: 6, Idle: 720 * time.Hour},
	}
	for _, mode := range []string{v1.PolicyEnforce, v1.PolicyAudit} {
		spec.Mode = mode
		chain := Compile([]*v1.ToolPolicy{named("p", spec)}).For(tool("get"))
		got, _ := counters(chain.steps, &chain.tool, req)
		if len(got) != len(want) {
			t.Fatalf("%d counters, want %d", len(got), len(want))
		}
		for i, w := range want {
			if mode == v1.PolicyAudit {
				w.Limit = -1
			}
			if got[i] != w {
				t.Errorf("%s: counter %d is %+v, want %+v", mode, i, got[i], w)
			}
		}
	}
}

// FuzzCounterKey checks that different policies, rules, sessions and turns never share a count, and that no text makes
// a key long or unprintable.
func FuzzCounterKey(f *testing.F) {
	f.Add("a", "b", "a|b", "")
	f.Add("a", "", "a|", "")
	f.Add("s|limits[0]", "t", "s", "limits[0]|t")
	f.Add(strings.Repeat("x", 200), "1", escape(strings.Repeat("x", 200)), "1")
	f.Add(strings.Repeat("|", 1000), strings.Repeat("t", 1000), strings.Repeat("|", 1001), strings.Repeat("t", 1000))
	f.Add("%7C", "", "|", "")
	f.Add("a b", "", "a+b", "")
	f.Add("\x00\xff", "\xfe", "\x00", "\xff\xfe")
	chain := Compile([]*v1.ToolPolicy{
		named("p", v1.ToolPolicySpec{MaxToolCallsPerTurn: n(1), MaxTotalToolCalls: n(1), Limits: []v1.Limit{{MaxCalls: n(1), Per: v1.PerTurn}, {MaxCalls: n(1), Per: v1.PerDay}}}),
		named("q", v1.ToolPolicySpec{MaxTotalToolCalls: n(1)}),
	}).For(tool("get"))
	f.Fuzz(func(t *testing.T, session1, turn1, session2, turn2 string) {
		seen := map[string]string{} // the counted calls by key
		for _, req := range []Request{{Session: session1, Turn: turn1}, {Session: session2, Turn: turn2}} {
			i := 0
			for _, r := range chain.steps {
				if !r.count.kept(req) {
					continue
				}
				keys, _ := counters(chain.steps, &chain.tool, req)
				c := keys[i]
				i++
				what := r.policy.name + "\x00" + r.name
				if r.count.window == 0 {
					what += "\x00" + req.Session
				}
				if r.count.per == v1.PerTurn {
					what += "\x00turn" + req.Turn
				}
				if other, ok := seen[c.Key]; ok && other != what {
					t.Fatalf("%q and %q share the key %q", other, what, c.Key)
				}
				seen[c.Key] = what
				if len(c.Key) > 1024 {
					t.Fatalf("a key of %d bytes", len(c.Key))
				}
				if strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
					t.Fatalf("key %q has an unprintable character", c.Key)
				}
			}
		}
	})
}

package policy

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

// BenchmarkAdmit admits calls under 0, 1 and 3 counting rules, in one session and, in parallel, in a session for each
// goroutine. Its floor is the minimum cost of exact counting: a count in a map under one lock.
func BenchmarkAdmit(b *testing.B) {
	most := n(1 << 60)
	specs := map[int]v1.ToolPolicySpec{
		0: {Blocklist: []string{"delete-*"}, Allowlist: []string{"get-*"}},
		1: {MaxTotalToolCalls: most},
		3: {MaxToolCallsPerTurn: most, MaxTotalToolCalls: most, Limits: []v1.Limit{{MaxCalls: most, Per: v1.PerMinute}}},
	}
	for _, rules := range []int{0, 1, 3} {
		chain := Compile([]*v1.ToolPolicy{named("p", specs[rules])}).For(tool("get-weather"))
		b.Run(fmt.Sprintf("rules=%d", rules), func(b *testing.B) {
			m, req := newCounters(), Request{Session: "session-1", Turn: "1"}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := chain.Admit(b.Context(), m, req); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("rules=%d/parallel", rules), func(b *testing.B) {
			m, ctx := newCounters(), b.Context()
			var ids atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				req := Request{Session: fmt.Sprintf("session-%d", ids.Add(1)), Turn: "1"}
				for pb.Next() {
					if _, err := chain.Admit(ctx, m, req); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
	floor := func() func(string) {
		var mu sync.Mutex
		counts := map[string]int64{}
		return func(session string) {
			key := "default/p|max_total_tool_calls|session|" + session
			mu.Lock()
			counts[key]++
			mu.Unlock()
		}
	}
	b.Run("floor", func(b *testing.B) {
		add := floor()
		b.ReportAllocs()
		for b.Loop() {
			add("session-1")
		}
	})
	b.Run("floor/parallel", func(b *testing.B) {
		add := floor()
		var ids atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			session := fmt.Sprintf("session-%d", ids.Add(1))
			for pb.Next() {
				add(session)
			}
		})
	})
}

// BenchmarkFor prepares the chain of one tool under ten policies.
func BenchmarkFor(b *testing.B) {
	var policies []*v1.ToolPolicy
	for i := range 10 {
		policies = append(policies, named(fmt.Sprintf("p%d", i), v1.ToolPolicySpec{MaxTotalToolCalls: n(5), Blocklist: []string{"delete-*"}}))
	}
	set := Compile(policies)
	b.ReportAllocs()
	for b.Loop() {
		set.For(tool("get-weather"))
	}
}

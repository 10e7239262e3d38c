package policy_test

import (
	"context"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

// The chain of rules admits calls until a limit is reached.
func Example() {
	one := int64(1)
	set := policy.Compile([]*v1.ToolPolicy{{
		Header: v1.Header{Kind: v1.KindToolPolicy, Metadata: v1.Metadata{Name: "careful"}},
		Spec:   v1.ToolPolicySpec{Blocklist: []string{"delete-*"}, MaxTotalToolCalls: &one},
	}})
	counters := policy.NewMemoryCounters(nil)
	for _, tool := range []string{"get-weather", "get-weather", "delete-account"} {
		chain := set.For(policy.Subject{Namespace: v1.DefaultNamespace, Name: tool})
		_, err := chain.Admit(context.Background(), counters, policy.Request{Session: "s1"})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// tool "get-weather": refused by policy "careful", rule max_total_tool_calls: 1 of 1 call used this session
	// tool "delete-account": refused by policy "careful", rule blocklist: on the blocklist as "delete-*"
}
